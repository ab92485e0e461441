"""What must divide what in plans of arrays: the checks of estimate._checks, for every search."""

import numpy as np

from tonnage.architectures import Model
from tonnage.estimate._checks import expert_counts
from tonnage.ops import Attention, LatentAttention


def heads_divide(model: Model, t: np.ndarray) -> np.ndarray:
    """As estimate._checks.check_tensor_parallel."""
    holds = np.ones(t.shape, dtype=bool)
    for heads, kv_heads in _heads(model):
        holds &= (t == 1) | (heads % t == 0)
        if kv_heads:
            holds &= (t == 1) | (kv_heads % t == 0) | (t % kv_heads == 0)
    return holds


def _heads(model: Model) -> set[tuple[int, int]]:
    """(query heads, key/value heads or 0) of every kind of attention."""
    found = set()
    for block in model.decoder.blocks:
        for op in block.ops:
            if isinstance(op, Attention | LatentAttention):
                found.add((op.heads, op.kv_heads if isinstance(op, Attention) else 0))
    return found


def experts_divide(model: Model, e: np.ndarray, q: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """As estimate._checks.check_experts."""
    alone = (e == 1) & (q == 1)
    counts = expert_counts(model)
    if not counts:
        return alone
    holds = ranks % (e * q) == 0
    for count in counts:
        holds &= count % e == 0
    return alone | holds
