"""The widest operation of a layer: what one forward pass of an engine holds at once."""

from functools import lru_cache

from tonnage.architectures import Block
from tonnage.ops import Kernels


@lru_cache(maxsize=4096)
def widest(block: Block, kernels: Kernels) -> float:
    """Numbers a token inside the widest operation of a layer: what it keeps that tensor parallelism cuts."""
    inner = 0.0
    for op in block.ops:
        inner = max(
            inner, sum(saved.elements for saved in op.saved(kernels) if saved.split != "whole" and not saved.core)
        )
    return inner
