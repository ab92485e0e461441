"""DeepSpeed run directly, and GPT-NeoX on it."""

from rows.training.config import Config
from rows.training.reader import Options, Reader


def options(c: Config) -> Options:
    """`offload: cpu` moves the optimizer, and under ZeRO-3 the parameters too."""
    place = c.text("offload", "offloading", "zero_offload")
    if not place or place in ("none", "false"):
        return {}
    where = "nvme" if "nvme" in place else "cpu"
    return {"offload_optimizer": where} | ({"offload_parameters": where} if "param" in place else {})


READER = Reader(
    name="DeepSpeed",
    runtime="deepspeed",
    frameworks=r"deepspeed|gpt-?neox",
    sources=r"microsoft/deepspeed|deepspeedai",
    options=options,
)
