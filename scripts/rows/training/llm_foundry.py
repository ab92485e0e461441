"""MosaicML's llm-foundry: Composer on FSDP."""

from rows.training.config import Config
from rows.training.reader import Options, Reader


def options(c: Config) -> Options:
    """PURE keeps and reduces everything in 16 bits; DEFAULT reduces in fp32 (composer/trainer/mosaic_fsdp_utils.py)."""
    pure = c.text("fsdp_mixed_precision") == "pure"
    return {"precision": "bf16-mixed-16bit-gradients"} if pure else {"precision": "bf16-mixed"}


READER = Reader(
    name="llm-foundry",
    runtime="fsdp2",
    frameworks=r"llm-?foundry|composer",
    sources=r"mosaicml/llm-foundry",
    options=options,
)
