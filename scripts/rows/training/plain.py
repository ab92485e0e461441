"""Rows that name no framework: what their parallel sizes need, else what `tonnage train` takes when nothing is said."""

from rows.training.config import Config
from rows.training.reader import PIPELINE, TENSOR, Options, Reader, parallel_sizes, sizes_or_one


def options(c: Config) -> Options:
    if c.has("fsdp", "fsdp2", "dp_shard"):
        return {"runtime": "fsdp2"}
    if sizes_or_one(c, TENSOR) > 1 or sizes_or_one(c, PIPELINE) > 1:
        return {"runtime": "megatron"}
    if c.has("zero", "zero_stage"):
        return {"runtime": "deepspeed"}
    if c.has("ddp"):
        return {"runtime": "ddp"}
    many = (c.size("gpus", "num_gpus") or parallel_sizes(c)) > 1
    return {"runtime": "fsdp2" if many else "transformers"}


READER = Reader(
    name="no framework named",
    runtime="fsdp2",
    frameworks=r"^$|^pytorch\b|^torch\b|^tonnage",
    figure="allocated",
    options=options,
)
