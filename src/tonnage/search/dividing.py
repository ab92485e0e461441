"""What must divide what in plans of arrays, for every search: the checks of estimate.plan.checks, and what a single
answer leaves to the user.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from tonnage.architectures import Model
from tonnage.estimate.plan.checks import expert_counts
from tonnage.estimate.plan.microbatches import microbatch_rule
from tonnage.estimate.plan.schedule import schedule_with_chunks
from tonnage.ops import Attention, LatentAttention
from tonnage.runtimes import TrainingRuntime

if (
    TYPE_CHECKING
):  # arrays come with numpy; `max`, which asks about single plans here, does without (a browser has none)
    import numpy as np

EVEN_PARTS = "sequences are dealt out to context and tensor ranks in equal parts"
Size = TypeVar("Size", int, "np.ndarray")


def heads_divide(model: Model, t: "np.ndarray") -> "np.ndarray":
    """As estimate.plan.checks.check_tensor_parallel."""
    import numpy as np

    holds = np.ones(t.shape, dtype=bool)
    for heads, kv_heads in _heads(model):
        holds &= (t == 1) | (heads % t == 0)
        if kv_heads:
            holds &= (t == 1) | (kv_heads % t == 0) | (t % kv_heads == 0)
    return holds


@lru_cache(maxsize=256)
def _heads(model: Model) -> frozenset[tuple[int, int]]:
    """(query heads, key/value heads or 0) of every kind of attention."""
    found = set()
    for block in model.decoder.blocks:
        for op in block.ops:
            if isinstance(op, Attention | LatentAttention):
                found.add((op.heads, op.kv_heads if isinstance(op, Attention) else 0))
    return frozenset(found)


def experts_divide(model: Model, e: "np.ndarray", q: "np.ndarray", ranks: "np.ndarray") -> "np.ndarray":
    """As estimate.plan.checks.check_experts."""
    alone = (e == 1) & (q == 1)
    counts = expert_counts(model)
    if not counts:
        return alone
    holds = ranks % (e * q) == 0
    for count in counts:
        holds &= count % e == 0
    return alone | holds


def sequence_parts(t: Size, c: Size, sequence_parallel: bool | None) -> Size:
    """Into how many equal parts ranks cut a sequence: two for each of several context ranks (megatron/core/utils.py:
    get_batch_on_this_cp_rank; torchtitan, distributed/parallel_dims.py: seq_len_divisor), each scattered over the
    tensor ranks unless `sequence_parallel` is off.

    >>> sequence_parts(4, 2, None)
    16
    """
    return (1 + (c > 1)) * c * (1 if sequence_parallel is False else t)


def microbatch_masks(
    runtime: TrainingRuntime, schedule: str | None, p: Size, v: Size, m: "np.ndarray"
) -> "Iterator[tuple[str, np.ndarray]]":
    """What the schedules of plans with v chunks a stage ask of their micro-batches, and which plans keep it: as
    estimate.plan.microbatches.check_microbatches. `schedule`: as the user names it, None for the runtime's own."""
    for chunks, of in ((1, v == 1), (2, v > 1)):
        rule = microbatch_rule(runtime, schedule_with_chunks(schedule, chunks).name)
        if rule is not None:
            yield rule.sentence, (p == 1) | (not of if isinstance(of, bool) else ~of) | rule.holds(m, p)
