"""What one long request keeps: the published configs by hand, tonnage, and hf-mem."""

from collections.abc import Mapping, Sequence
from typing import Any

import tonnage
from tonnage.estimate.serving.memory import serving_memory
from tonnage.kernel.units import GIB
from tonnage.spec import ServingPlan

TOKENS = 131_072
FULL, BF16, FP32 = TOKENS, 2, 4
# Layers x elements of a token x tokens x bytes, summed over kinds of layers: read off each config.json by hand, and not
# by tonnage.
BY_HAND: Mapping[str, Sequence[tuple[int, int, int, int]]] = {
    "llama-3.1-8b": ((32, 2 * 8 * 128, FULL, BF16),),
    "deepseek-v3": ((61, 512 + 64, FULL, BF16),),  # a latent and a rotated key for all heads together
    "kimi-k2-instruct": ((61, 512 + 64, FULL, BF16),),
    # and 128 elements of the indexer in eight bits, with a scale in 32 bits
    "glm-5": ((78, 512 + 64, FULL, BF16), (78, 128 + 4, FULL, 1)),
    "gpt-oss-120b": ((18, 2 * 8 * 64, FULL, BF16), (18, 2 * 8 * 64, 128, BF16)),
    "gemma-4-26b-a4b-it": ((5, 2 * 2 * 512, FULL, BF16), (25, 2 * 8 * 256, 1024, BF16)),
    # of linear attention and Mamba: a state in fp32, and three tokens before the convolution
    "qwen3.5-27b": (
        (16, 2 * 4 * 256, FULL, BF16),
        (48, 48 * 128 * 128, 1, FP32),
        (48, 2 * 16 * 128 + 48 * 128, 3, BF16),
    ),
    "nvidia-nemotron-3-nano-30b-a3b-bf16": (
        (6, 2 * 2 * 128, FULL, BF16),
        (23, 64 * 64 * 128, 1, FP32),
        (23, 64 * 64 + 2 * 8 * 128, 3, BF16),
    ),
    "mimo-v2-flash": ((9, 4 * (192 + 128), FULL, BF16), (39, 8 * (192 + 128), 128, BF16)),
    "llama-4-scout-17b-16e-instruct": ((12, 2 * 8 * 128, FULL, BF16), (36, 2 * 8 * 128, 8192, BF16)),
}
TEXT = f"""## Keys, values and states of one request of {TOKENS:,} tokens

GiB in bf16, of the whole model. The first column is arithmetic on the fields of each published config (benchmarks/peer_tables/cache_sizes.py
has it in a line per model). tonnage: computed, what the architecture keeps; what an engine sets aside beyond it is in `tonnage serve`.
hf-mem: live.
"""


def questions() -> dict[str, Any]:
    return {"tokens": TOKENS, "configs": {name: dict(tonnage.read(name, offline=True).config) for name in BY_HAND}}


def by_hand(name: str) -> int:
    """Bytes of one request."""
    return sum(layers * elements * tokens * size for layers, elements, tokens, size in BY_HAND[name])


def ours(name: str) -> float:
    plan = ServingPlan(context=TOKENS, kv_cache="bf16")
    return float(serving_memory(tonnage.read(name, offline=True), plan).fullest.kept.value)


def section(theirs: Mapping[str, float]) -> list[Sequence[str]]:
    """The table. `theirs`: bytes that hf-mem says."""
    lines: list[Sequence[str]] = [("GiB", "by hand", "tonnage", "hf-mem")]
    for name in BY_HAND:
        truth = by_hand(name)
        said = (f"{value / GIB:.3f} ({value / truth:.2f} x)" for value in (ours(name), theirs[name]))
        lines.append((name, f"{truth / GIB:.3f}", *said))
    return lines
