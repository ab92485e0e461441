"""Which plans of a group hold the rules of estimate.plan.validity, and what each rule takes away."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tonnage.estimate.frameworks.base import rules_of
from tonnage.estimate.options.parallel import facts_of
from tonnage.estimate.plan.rule import READ, reasons
from tonnage.runtimes import training_runtime
from tonnage.search.removed import Tally
from tonnage.search.training.pipelines import with_choices
from tonnage.search.training.space import SHIFTED, Group, Space, usual_batch

Columns = dict[str, np.ndarray]


def columns_of(space: Space, group: Group) -> Columns:
    """The sizes of all plans of a group: `inner` as (rows, 1), what the number of accelerators decides as (rows,
    machines).
    """
    columns: Columns = {name: values[:, None] for name, values in group.inner.items()}
    used = columns["tensor_parallel_size"] * columns["context_parallel_size"] * group.stages
    fixed_size = space.options.data_parallel_size
    columns["data_parallel_size"] = (
        np.maximum(space.worlds[None] // used, 1) if fixed_size is None else fixed_size + 0 * used
    )
    for s, batches in space.shifted.items() if (group.inner["global_batch_size"] == SHIFTED).any() else ():
        shifted = (columns["global_batch_size"] == SHIFTED) & (columns["sequence_length"] == s)
        if shifted.any():
            columns["global_batch_size"] = np.where(shifted, batches[None], columns["global_batch_size"])
    sequences_of_ranks = columns["micro_batch_size"] * columns["data_parallel_size"]
    fixed_microbatches = space.options.num_microbatches
    counted = np.maximum(columns["global_batch_size"] // sequences_of_ranks, 1)
    columns["num_microbatches"] = np.where(
        columns["global_batch_size"] == 0, fixed_microbatches or group.stages, counted
    )
    return columns


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
        key = (
            group.choices["runtime"],
            *(group.choices.get(name) for name in READ),
            group.block,
            group.stages,
            group.chunks,
        )
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
    """The constraints of plans as text, each with the plans that hold it. Pipelines that cannot be are not made
    (search.training.pipelines),
    or are given, and refused as a whole.
    """
    runtime = training_runtime(group.choices["runtime"])
    facts = facts_of(space.model, runtime, with_choices(space.options, group.names))
    stages = {"pipeline_parallel_size": group.stages, "virtual_pipeline_size": group.chunks}
    rules = [rule for rule in rules_of(runtime) if not rule.of_pipelines]
    yield from reasons(facts, {**columns, **stages, "accelerators": space.worlds[None]}, rules)
    if (group.inner["global_batch_size"] == SHIFTED).any():
        usual = np.array([usual_batch(s) for s in group.inner["sequence_length"].tolist()])[:, None]
        yield (
            "each global batch is tried once",
            (group.inner["global_batch_size"] != SHIFTED)[:, None] | (columns["global_batch_size"] != usual),
        )
