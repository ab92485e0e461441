"""Megatron-LM and what runs on its core: SimuMax's measurements, NeMo, Megatron-Bridge."""

from rows.training.config import Config
from rows.training.reader import PRECISION, Options, Reader
from rows.training.words import EIGHT


def options(c: Config) -> Options:
    made: Options = {}
    if not c.has("zero", "zero_stage", "distributed_optimizer", "sharding"):
        made["zero_stage"] = 1  # every recipe of NeMo and Megatron-Bridge sets use_distributed_optimizer
    made["context_parallel_method"] = c.text("cp_comm", "cp_comm_type") or None
    made["expert_capacity_factor"] = c.find("capacity_factor", "moe_expert_capacity_factor")[1]
    made["runtime_version"] = c.text("framework") or None
    if EIGHT.search(c.text(*PRECISION)):  # TransformerEngine casts, and keeps the fp8 weights for backward
        made |= {"precision": "fp8-te", "float8": None}
    return made


READER = Reader(
    name="Megatron-LM",
    runtime="megatron",
    frameworks=r"megatron|nemo|simumax|mcore",
    sources=r"simumax|megatron",
    options=options,
)
