"""What a plan of training must hold, as sentences and as arrays: the checks of estimate.plans for many plans at once.

A test asks both about the same plans (tests/search/test_training_space.py).
"""

from collections.abc import Iterator

import numpy as np

from tonnage.estimate._checks import expert_counts
from tonnage.estimate.training_options import TrainingOptions
from tonnage.runtimes import training_runtime
from tonnage.search.dividing import (
    EVEN_PARTS,
    WHOLE_ROUNDS,
    experts_divide,
    heads_divide,
    rounds_are_whole,
    sequence_parts,
    takes_rounds,
)
from tonnage.search.removed import Tally
from tonnage.search.training.space import Group, Space

Columns = dict[str, np.ndarray]


def columns_of(space: Space, group: Group) -> Columns:
    """The sizes of all plans of a group: `inner` as (rows, 1), what the number of accelerators decides as (rows, machines)."""
    made: Columns = {name: values[:, None] for name, values in group.inner.items()}
    used = made["tensor_parallel_size"] * made["context_parallel_size"] * group.stages
    made["data_parallel_size"] = np.maximum(space.worlds[None] // used, 1)
    each = made["micro_batch_size"] * made["data_parallel_size"]
    said = space.options.num_microbatches
    counted = np.maximum(made["global_batch_size"] // each, 1)
    made["num_microbatches"] = np.where(made["global_batch_size"] == 0, said or group.stages, counted)
    return made


def holding(space: Space, group: Group, columns: Columns, tally: Tally) -> np.ndarray:
    """Which plans hold every constraint: shape (rows, machines). What each takes away is counted."""
    left = np.ones((group.rows, len(space.worlds)), dtype=bool)
    tally.consider(left.size)
    for sentence, holds in _constraints(space, group, columns):
        left = tally.hold(sentence, left, np.broadcast_to(holds, left.shape))
    return left


def _constraints(space: Space, group: Group, columns: Columns) -> Iterator[tuple[str, np.ndarray]]:
    o, worlds = space.options, space.worlds[None]
    t, c, d, m = (
        columns[name]
        for name in ("tensor_parallel_size", "context_parallel_size", "data_parallel_size", "num_microbatches")
    )
    used = t * c * group.stages
    yield "tensor x pipeline x context parallel sizes divide the accelerators", worlds % used == 0
    if o.data_parallel_size is not None:
        yield f"data_parallel_size is {o.data_parallel_size:,}, as given", worlds == used * o.data_parallel_size
    yield f"tensor_parallel_size divides the heads of {space.model.name}", heads_divide(space.model, t)
    yield "context_parallel_size divides sequence_length", columns["sequence_length"] % c == 0
    spread = group.choices.get("sequence_parallel", o.sequence_parallel)
    yield EVEN_PARTS, columns["sequence_length"] % sequence_parts(t, c, spread) == 0
    yield from _of_loss(o, group, columns["sequence_length"] // c)
    if expert_counts(space.model):
        e, q = columns["expert_parallel_size"], columns["expert_tensor_parallel_size"]
        yield (
            "experts are dealt out evenly, to the ranks of a pipeline stage",
            experts_divide(space.model, e, q, t * c * d),
        )
    batch, each = columns["global_batch_size"], columns["micro_batch_size"] * d
    yield "micro_batch_size x data_parallel_size divides global_batch_size", (batch == 0) | (batch % each == 0)
    if o.num_microbatches is not None:
        yield f"num_microbatches is {o.num_microbatches:,}, as given", m == o.num_microbatches
    if takes_rounds(training_runtime(group.choices["runtime"]), group.chunks):
        yield WHOLE_ROUNDS, rounds_are_whole(m, group.stages, group.chunks)


def _of_loss(o: TrainingOptions, group: Group, tokens: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    runtime = training_runtime(group.choices["runtime"])
    loss = group.choices.get("loss", o.loss)
    if loss == "chunked" and runtime.equal_chunks and runtime.loss_chunks:
        yield (
            f"a chunked loss cuts the sequence of a rank into {runtime.loss_chunks} equal parts",
            tokens % runtime.loss_chunks == 0,
        )
