"""The runs that every tool is asked about, and what tonnage answers: GiB of tensors on the fullest rank."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

import tonnage
from tonnage.kernel.units import GIB
from tonnage.validation import read as read_rows

MEASURED_ROWS = Path(__file__).parents[2] / "validation" / "allocator_reserve.yaml"


class Case(Struct, frozen=True, kw_only=True):
    """One run. `changed`: fields of the model's config that differ from the catalogue's; `row`: the id of its
    measured row.
    """

    name: str
    model: str
    on: str
    world_size: int
    options: Mapping[str, Any]
    changed: Mapping[str, Any] = {}
    row: str = ""

    def read(self) -> tonnage.Model:
        return tonnage.read(self.model, overrides=dict(self.changed), offline=True)

    def allocated(self) -> float:
        """What torch.cuda.max_memory_allocated stands for: no CUDA context, no NCCL buffers, no reserve of the
        allocator.
        """
        memory = tonnage.train(self.read(), on=self.on, as_is=True, **self.options).memory
        return (memory.value - memory.child("runtime overhead").value) / GIB

    @property
    def command(self) -> str:
        """The same question on the command line."""
        said = {**self.changed, **self.options}
        options = (f"--{name.replace('_', '-')} {value}" for name, value in said.items())
        return " ".join(("tonnage train", self.model, "--on", self.on, *options))


def _llamas(runtime: str, zero_stage: int) -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"{setup} {recompute}",
            model=model,
            on="8xA100-SXM-80GB",
            world_size=8,
            options={"runtime": runtime, "zero_stage": zero_stage, "sequence_length": length, "recompute": recompute},
        )
        for setup, model, length in (("A", "llama-2-7b", 4096), ("B", "llama-3-8b", 8192))
        for recompute in ("none", "selective", "full")
    )


def _gpt3(name: str, **options: Any) -> Case:
    sizes = {"tensor_parallel_size": 8, "pipeline_parallel_size": 8, "num_microbatches": 64, "sequence_length": 2048}
    # 51,200 rows: the vocabulary as Megatron-LM pads it for eight tensor ranks, and as the paper counts it.
    return Case(
        name=name,
        model="gpt3-175b",
        on="8x8xA100-SXM-80GB",
        world_size=64,
        changed={"vocab_size": 51200},
        options={"runtime": "megatron", "zero_stage": 1, **sizes, **options},
    )


def _measured(name: str, row: str, **sizes: int) -> Case:
    large = name.startswith("405B")
    # The launcher of the 405B runs has 16 heads of keys and values, not the published 8.
    changed = {"num_hidden_layers": 4, "num_key_value_heads": 16} if large else {"num_hidden_layers": 12}
    return Case(
        name=name,
        model="llama-3.1-405b" if large else "llama-3-70b",
        on="8xB200-SXM-180GB",
        world_size=8,
        changed=changed,
        row=f"simumax-b200-llama3_{row}",
        options={"runtime": "megatron", "zero_stage": 1, "sequence_length": 4096, "num_microbatches": 4, **sizes},
    )


ZERO1: tuple[Case, ...] = (
    *_llamas("megatron", 1),
    _gpt3("C none", recompute="none", attention="flash"),
    _gpt3("C none, eager", recompute="none", attention="eager"),
    _gpt3("C selective", recompute="selective", attention="eager"),
    _gpt3("C selective, 3 chunks", recompute="selective", attention="eager", virtual_pipeline_size=3),
    _gpt3("C full", recompute="full", attention="eager"),
)
ZERO3: tuple[Case, ...] = _llamas("fsdp2", 3)
MEASURED: tuple[Case, ...] = (
    _measured("70B L12 TP1 PP2 DP4", "70b_l12_tp1_pp2_dp4", pipeline_parallel_size=2),
    _measured("70B L12 TP2 DP4", "70b_tp2_pp1_dp4_l12", tensor_parallel_size=2),
    _measured("70B L12 TP4 DP2", "70b_l12_tp4_pp1_dp2", tensor_parallel_size=4),
    _measured("70B L12 TP8", "70b_l12_tp8_pp1_dp1", tensor_parallel_size=8),
    _measured("405B L4 TP1 PP2 DP4", "405b_l4_tp1_pp2_dp4", pipeline_parallel_size=2),
    _measured("405B L4 TP2 DP4", "405b_l4_tp2_pp1_dp4", tensor_parallel_size=2),
    _measured("405B L4 TP4 DP2", "405b_l4_tp4_pp1_dp2", tensor_parallel_size=4),
    _measured("405B L4 TP8", "405b_l4_tp8_pp1_dp1", tensor_parallel_size=8),
)
TABLES: Mapping[str, tuple[Case, ...]] = {"measured": MEASURED, "zero1": ZERO1, "zero3": ZERO3}


def measured() -> dict[str, float]:
    """GiB that each measured run allocated at its peak."""
    rows = {row.id: row for row in read_rows([str(MEASURED_ROWS)])}
    return {case.name: float(rows[case.row].also[0].value) for case in MEASURED}
