"""What a plan of training must hold, as sentences and as arrays: the checks of estimate.options.plans for many plans at
once.

A test asks both about the same plans (tests/search/test_training_space.py).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tonnage.estimate.plan.checks import expert_counts
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.kernel.units import parse_count
from tonnage.runtimes import training_runtime
from tonnage.search.dividing import EVEN_PARTS, experts_divide, heads_divide, microbatch_masks, sequence_parts
from tonnage.search.removed import Tally
from tonnage.search.training.space import SHIFTED, Group, Space, usual_batch

Columns = dict[str, np.ndarray]
READ = (
    "runtime",
    "sequence_parallel",
    "loss",
    "pipeline_schedule",
    "zero_stage",
    "replicate_size",
    "zero_hpz_partition_size",
)  # names of a choice that the constraints read


def columns_of(space: Space, group: Group) -> Columns:
    """The sizes of all plans of a group: `inner` as (rows, 1), what the number of accelerators decides as (rows,
    machines).
    """
    made: Columns = {name: values[:, None] for name, values in group.inner.items()}
    used = made["tensor_parallel_size"] * made["context_parallel_size"] * group.stages
    made["data_parallel_size"] = np.maximum(space.worlds[None] // used, 1)
    for s, batches in space.shifted.items() if (group.inner["global_batch_size"] == SHIFTED).any() else ():
        shifted = (made["global_batch_size"] == SHIFTED) & (made["sequence_length"] == s)
        if shifted.any():
            made["global_batch_size"] = np.where(shifted, batches[None], made["global_batch_size"])
    each = made["micro_batch_size"] * made["data_parallel_size"]
    said = space.options.num_microbatches
    counted = np.maximum(made["global_batch_size"] // each, 1)
    made["num_microbatches"] = np.where(made["global_batch_size"] == 0, said or group.stages, counted)
    return made


class Validity:
    """The valid plans of groups, asked once for all that differ only in names that no constraint reads, or in how
    layers are dealt out.
    """

    def __init__(self, space: Space):
        self.space = space
        self._known: dict[tuple[Any, ...], tuple[np.ndarray, Tally]] = {}

    def of(self, group: Group) -> tuple[np.ndarray, Tally]:
        """As `holding`, of a whole group of the space, with the counts of just this group. The mask is shared: it
        must not be written to.
        """
        key = (*(group.choices.get(name) for name in READ), group.block, group.stages, group.chunks)
        if key not in self._known:
            tally = Tally()
            self._known[key] = holding(self.space, group, columns_of(self.space, group), tally), tally
        return self._known[key]

    def forget(self) -> None:
        """Let go of all masks: other blocks of columns come."""
        self._known.clear()


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
        yield (
            Message("data_parallel_size is {data_parallel_size:,}, as given", data_parallel_size=o.data_parallel_size),
            worlds == used * o.data_parallel_size,
        )
    yield (
        Message("tensor_parallel_size divides the heads of {model}", model=space.model.name),
        heads_divide(space.model, t),
    )
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
    yield from _of_groups(o, group, d, c)
    batch, each = columns["global_batch_size"], columns["micro_batch_size"] * d
    yield "micro_batch_size x data_parallel_size divides global_batch_size", (batch == 0) | (batch % each == 0)
    if (group.inner["global_batch_size"] == SHIFTED).any():
        usual = np.array([usual_batch(s) for s in group.inner["sequence_length"].tolist()])[:, None]
        yield (
            "each global batch is tried once",
            (group.inner["global_batch_size"] != SHIFTED)[:, None] | (batch != usual),
        )
    if o.num_microbatches is not None:
        yield (
            Message("num_microbatches is {num_microbatches:,}, as given", num_microbatches=o.num_microbatches),
            m == o.num_microbatches,
        )
    schedule = group.choices.get("pipeline_schedule", o.pipeline_schedule)
    yield from microbatch_masks(training_runtime(group.choices["runtime"]), schedule, group.stages, group.chunks, m)


def _of_groups(o: TrainingOptions, group: Group, d: np.ndarray, c: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Smaller groups that data-parallel ranks form must divide them: a rate of links is asked of whole groups alone."""
    runtime = training_runtime(group.choices["runtime"])
    copies = group.choices.get("replicate_size", o.replicate_size)
    if runtime.replicates and copies:
        yield "replicate_size divides data_parallel_size", d % copies == 0
    if "zero_hpz_partition_size" in runtime.options and group.choices["zero_stage"] == 3:
        part = group.choices.get("zero_hpz_partition_size", o.zero_hpz_partition_size)
        count = _count(part)
        if count:
            yield "zero_hpz_partition_size divides the ranks that share the weights", d * c % count == 0


def _count(said: int | str | None) -> int | None:
    """A number of ranks; None where it is not given, or is none: the runtime's own check says why."""
    try:
        count = parse_count(said, "zero_hpz_partition_size") if isinstance(said, str) else said
    except InvalidInput:
        return None
    return count if count and count > 0 else None


def _of_loss(o: TrainingOptions, group: Group, tokens: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    runtime = training_runtime(group.choices["runtime"])
    loss = group.choices.get("loss", o.loss)
    if loss == "chunked" and runtime.equal_chunks and runtime.loss_chunks:
        yield (
            Message(
                "a chunked loss cuts the sequence of a rank into {loss_chunks} equal parts",
                loss_chunks=runtime.loss_chunks,
            ),
            tokens % runtime.loss_chunks == 0,
        )
