"""Twelve training programs, traced and estimated: what differs, part by part. Needs the extra `trace`.

python scripts/compare_trace.py            # prints the tables of docs/traced_and_analytic.md
"""

import sys
import time

from msgspec.structs import replace

from tonnage import read
from tonnage.kernel.units import GIB
from tonnage.trace.against import Comparison, analytic_phases, compare
from tonnage.trace.answer import answer
from tonnage.trace.profiles import profile
from tonnage.trace.record.model import record_model
from tonnage.trace.request import TraceOptions, checked

CASES = {
    "1": ("llama-3.1-8b", TraceOptions()),
    "2": ("llama-3.1-8b", TraceOptions(recompute="full")),
    "3": ("llama-3.2-1b", TraceOptions(micro_batch_size=4, sequence_length=2048)),
    "4": ("llama-3.2-1b", TraceOptions(precision="fp32", sequence_length=1024)),
    "5": ("qwen2.5-7b", TraceOptions(recompute="full", optimizer="sgd-momentum")),
    "6": ("gemma-3-1b-it", TraceOptions(sequence_length=2048)),
    "7": ("gpt2-xl", TraceOptions(sequence_length=1024)),
    "8": ("llama-3.2-1b", TraceOptions(attention="eager", sequence_length=1024)),
    "9": ("qwen3-30b-a3b", TraceOptions(sequence_length=2048, recompute="full")),
    "10": ("llama-3.2-3b", TraceOptions(num_microbatches=4, sequence_length=2048)),
    "11": ("llama-3.1-8b", TraceOptions(runtime="fsdp2", world_size=8, precision="bf16-mixed")),
    "12": ("llama-3.2-1b", TraceOptions(runtime="ddp", world_size=8, precision="bf16-mixed", sequence_length=2048)),
}  # fmt: skip


def compared(name: str, options: TraceOptions) -> Comparison:
    """AdamW is fused, as the Trainer of transformers and torchtitan run it; a plain script under DDP has PyTorch's
    default, foreach.
    """
    model = read(name, offline=True)
    fused = options.optimizer == "adamw" and options.runtime != "ddp"
    chosen = checked(model, replace(options, optimizer_implementation="fused") if fused else options)
    traced = answer(record_model(model, chosen, profile("torch-2.13-h100")))
    return compare(traced, analytic_phases(model, chosen))


def said(options: TraceOptions) -> str:
    plain = TraceOptions()
    changed = [
        f"{field} {getattr(options, field)}"
        for field in options.__struct_fields__
        if getattr(options, field) != getattr(plain, field)
    ]
    return ", ".join(changed) or "defaults"


def main(chosen: list[str]) -> None:
    print("| | model | options | traced | analytic | |\n|---|---|---|---|---|---|")
    details = []
    for number in chosen or CASES:
        name, options = CASES[number]
        start = time.perf_counter()
        made = compared(name, options)
        print(
            f"| {number} | {name} | {said(options)} | {made.traced_bytes / GIB:.2f} | "
            f"{made.analytic_bytes / GIB:.2f} | "
            f"{100 * made.relative_error:+.1f} % |",
            flush=True,
        )
        print(f"{number}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        for row in made.rows:
            details.append(
                f"| {number} | {row.stage} | {row.part} | {row.traced_bytes / GIB:.2f} | "
                f"{row.analytic_bytes / GIB:.2f} | {row.difference / GIB:+.2f} |"
            )
    print("\n| | peak of | part | traced | analytic | difference |\n|---|---|---|---|---|---|")
    print("\n".join(details))


if __name__ == "__main__":
    main(sys.argv[1:])
