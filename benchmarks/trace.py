"""What a trace costs: time after imports and resident memory, each case in a process of its own; events a second of the
allocator.

    python benchmarks/trace.py [WORD ...]       only the cases whose names hold all words
    python benchmarks/trace.py --small          one case, once, against no target, as the tests run it

Writes results_trace.json, in the form of results.json: a list of {name, value, unit}. Needs torch and transformers.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

HERE = Path(__file__).parent
TIMES = 3
TARGETS = {"s": "at most", "GB": "at most", "events/s": "at least"}


class Case(Struct, frozen=True):
    """Two steps of a model in bf16 with AdamW, sequence length 4096. `limit`: seconds that it may take; None: for
    comparison.
    """

    model: str
    recompute: str
    folded: bool
    limit: float | None = None

    @property
    def name(self) -> str:
        how = "folded" if self.folded else "unfolded"
        return f"two steps of {self.model}, recompute {self.recompute}, {how}"


CASES = (
    Case("llama-3.1-8b", "none", False, 5.0),
    Case("llama-3.1-8b", "none", True),
    Case("llama-3.1-70b", "full", False, 10.0),
    Case("llama-3.1-70b", "full", True),
    Case("llama-3.1-405b", "full", False),
    Case("llama-3.1-405b", "full", True, 25.0),
)
MEMORY = 2.0  # GB of the host, for the 8B model
EVENTS = 400_000  # a second, through the allocator


def run(case: Case) -> dict[str, float]:
    """One trace in this process: seconds after imports by the clock and of CPU, gigabytes resident, events a second of
    the allocator's model.
    """
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, LlamaForCausalLM  # noqa: F401  it imports a model at its first use

    from tonnage import read
    from tonnage.trace.profiles import profile
    from tonnage.trace.record import huggingface
    from tonnage.trace.record.folded import record_folded
    from tonnage.trace.replay import replay

    transformers.logging.set_verbosity_error()
    model, chosen = read(case.model), profile("torch-2.13-h100")
    layers = model.decoder.num_layers

    def make(count: int) -> Any:
        built = huggingface.build(model.config, num_layers=count)
        return huggingface.training_program(
            built, sequence_length=4096, micro_batch_size=1, optimizer=torch.optim.AdamW, recompute=case.recompute
        )

    start, began = time.perf_counter(), time.process_time()
    made = record_folded(make, layers, profile=chosen) if case.folded else whole(make, layers, chosen)
    taken, cpu = time.perf_counter() - start, time.process_time() - began
    replayed = best(lambda: replay(made.events), TIMES)
    return {
        "s": taken,
        "CPU s": cpu,
        "GB": resident(),
        "events": len(made.events),
        "events/s": len(made.events) / replayed,
    }


def whole(make: Callable[[int], Any], layers: int, chosen: Any) -> Any:
    from tonnage.trace.record.fake.environment import recording
    from tonnage.trace.record.train import train

    with recording("meta", chosen) as recorder:
        train(recorder, make(layers), 2)
    return recorder.recording()


def best(call: Callable[[], object], times: int) -> float:
    """The least of several runs, in seconds: what the machine's other work adds is not ours."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def resident() -> float:
    """The most memory that this process has held, in GB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main(words: list[str], *, small: bool) -> None:
    results: list[dict[str, object]] = []
    missed = []

    def note(name: str, value: float, unit: str, target: float | None = None) -> None:
        results.append({"name": name, "value": value, "unit": unit})
        good = small or target is None or (value >= target if TARGETS[unit] == "at least" else value <= target)
        aim = "" if target is None else f"{TARGETS[unit]} {target:g}{'' if good else '  MISSED'}"
        missed.extend([] if good else [name])
        print(f"{name:<76} {value:12.4g} {unit:<9} {aim}", flush=True)

    for number, case in enumerate(CASES):
        if not all(word in case.name for word in words):
            continue
        runs = [_in_a_process(number) for _ in range(1 if small else TIMES)]
        note(f"{case.name}: after imports", min(each["s"] for each in runs), "s", case.limit)
        note(
            f"{case.name}: resident memory",
            min(each["GB"] for each in runs),
            "GB",
            MEMORY if "8b" in case.name else None,
        )
        note(f"{case.name}: events", runs[0]["events"], "events")
        if not case.folded:
            note(f"{case.name}: the allocator's model", max(each["events/s"] for each in runs), "events/s", EVENTS)
    if not words:
        (HERE / "results_trace.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if missed:
        sys.exit("missed: " + "; ".join(missed))


def _in_a_process(number: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-P",
        "-W",
        "ignore",
        __file__,
        "--case",
        str(number),
    ]  # -P: the standard library has a trace too
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        print(json.dumps(run(CASES[int(sys.argv[2])])))
    else:
        small = sys.argv[1:] == ["--small"]
        main(["llama-3.1-8b", ", folded"] if small else sys.argv[1:], small=small)
