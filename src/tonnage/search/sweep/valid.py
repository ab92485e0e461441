"""Which plans of an array can be: what must divide what, as arrays. What else a runtime asks of its sizes is asked by estimate.plans."""

from collections.abc import Mapping

import numpy as np

from tonnage.architectures import Model
from tonnage.estimate._checks import expert_counts
from tonnage.ops import Attention, LatentAttention
from tonnage.search.removed import Tally
from tonnage.spec import Cluster

Columns = Mapping[str, np.ndarray]


def valid(model: Model, cluster: Cluster, columns: Columns, tally: Tally) -> np.ndarray:
    """A mask of shape (plans,): the plans whose sizes belong together. `columns` are complete (complete_columns), whole numbers, all
    of one shape; `tally` counts what each constraint took away."""
    world, (t, p, c, d, e, q) = cluster.size, (columns[f"{name}_parallel_size"] for name in
                                               ("tensor", "pipeline", "context", "data", "expert", "expert_tensor"))  # fmt: skip
    left = np.ones(t.shape, dtype=bool)
    left = tally.hold(
        "tensor x pipeline x context x data parallel sizes are the accelerators of the cluster",
        left,
        t * p * c * d == world,
    )
    left = tally.hold("there is a layer for each pipeline stage", left, p <= model.num_layers)
    left = tally.hold("tensor_parallel_size divides the heads of the model", left, _heads_divide(model, t))
    left = tally.hold(
        "experts are dealt out evenly, to the ranks of a stage", left, _experts_divide(model, e, q, d * c * t)
    )
    left = tally.hold("context_parallel_size divides sequence_length", left, columns["sequence_length"] % c == 0)
    if "global_batch_size" in columns:
        batch = columns["micro_batch_size"] * d
        even = columns["global_batch_size"] % np.maximum(batch, 1) == 0
        left = tally.hold(
            "global_batch_size is a multiple of micro_batch_size x data_parallel_size", left, even & (batch > 0)
        )
    return left


def _heads_divide(model: Model, t: np.ndarray) -> np.ndarray:
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


def _experts_divide(model: Model, e: np.ndarray, q: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """As estimate._checks.check_experts."""
    alone = (e == 1) & (q == 1)
    counts = expert_counts(model)
    if not counts:
        return alone
    holds = ranks % (e * q) == 0
    for count in counts:
        holds &= count % e == 0
    return alone | holds
