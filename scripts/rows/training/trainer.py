"""transformers' Trainer and what is built on it (TRL, Axolotl, plain Accelerate)."""

from rows.training.config import Config
from rows.training.reader import Options, Reader, parallel_sizes


def options(c: Config) -> Options:
    many = (c.size("gpus", "num_gpus") or parallel_sizes(c)) > 1
    text = f"{c.text('framework')} {c.text('strategy', 'distributed')}"
    runtime = (
        "deepspeed"
        if "deepspeed" in text or "zero" in text
        else "fsdp2"
        if "fsdp" in text
        else "ddp"
        if many
        else "transformers"
    )
    return {"runtime": runtime}


READER = Reader(
    name="transformers",
    runtime="transformers",
    frameworks=r"\btrainer\b|transformers|\btrl\b|axolotl|accelerate",
    figure="reserved",
    plain_16_bit="true",
    options=options,
)
