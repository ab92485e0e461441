"""Which plans of a group hold the rules of estimate.plan.validity, and what each rule takes away."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.frameworks.base import rules_of
from tonnage.estimate.options.parallel import facts_of
from tonnage.estimate.plan.rule import READ, reasons
from tonnage.runtimes import training_runtime
from tonnage.search.removed import Tally
from tonnage.search.training.pipelines import Pipeline, with_choices
from tonnage.search.training.space import SHIFTED, Group, Space, Stack, usual_batch

Columns = dict[str, np.ndarray]
MOST_KEPT = 2**25  # plans whose validity is kept, a byte each: with more all are forgotten


def columns_of(space: Space, group: Group | Stack, machines: np.ndarray | None = None) -> Columns:
    """The sizes of all plans of a group: `inner` as (rows, 1), what the number of accelerators decides as (rows,
    machines), and of a stack as (pipelines, rows, machines). `machines`: which of the space's, all where it is None.
    """
    worlds = space.worlds if machines is None else space.worlds[machines]
    columns: Columns = {name: values[:, None] for name, values in group.inner.items()}
    used = columns["tensor_parallel_size"] * columns["context_parallel_size"] * group.stages
    fixed_size = space.options.data_parallel_size
    columns["data_parallel_size"] = np.maximum(worlds[None] // used, 1) if fixed_size is None else fixed_size + 0 * used
    for s, batches in space.shifted.items() if (group.inner["global_batch_size"] == SHIFTED).any() else ():
        shifted = (columns["global_batch_size"] == SHIFTED) & (columns["sequence_length"] == s)
        if shifted.any():
            own = batches if machines is None else batches[machines]
            columns["global_batch_size"] = np.where(shifted, own[None], columns["global_batch_size"])
    sequences_of_ranks = columns["micro_batch_size"] * columns["data_parallel_size"]
    fixed_microbatches = space.options.num_microbatches
    counted = np.maximum(columns["global_batch_size"] // sequences_of_ranks, 1)
    columns["num_microbatches"] = np.where(
        columns["global_batch_size"] == 0, fixed_microbatches or group.stages, counted
    )
    return columns


class Valid(Struct, frozen=True, eq=False):
    """Which plans of a stack hold every constraint, and what each constraint takes away.

    `mask`: shape (pipelines, rows, machines); `plans`: how many are left of each pipeline on each machine, shape
    (pipelines, machines); `removed`: by constraint, of the same shape.
    """

    mask: np.ndarray
    plans: np.ndarray
    removed: Mapping[str, np.ndarray]

    def only(self, pipelines: np.ndarray) -> "Valid":
        removed = {sentence: counts[pipelines] for sentence, counts in self.removed.items()}
        return Valid(self.mask[pipelines], self.plans[pipelines], removed)

    @property
    def tally(self) -> Tally:
        """The counts of all its plans."""
        tally = Tally()
        tally.consider(self.mask.size)
        for sentence, counts in self.removed.items():
            tally.remove(sentence, int(counts.sum()))
        return tally


class Validity:
    """The valid plans of the stacks of a space, asked once for all that differ only in names that no constraint reads,
    or in how layers are dealt out; and once for all accelerators that come in the same numbers (Space.on).
    """

    def __init__(self, space: Space):
        self.space = space
        self._masks: dict[tuple[Any, ...], tuple[Valid, np.ndarray]] = space.valid_masks
        self._tallies: dict[tuple[Any, ...], Tally] = space.valid_tallies

    def of(self, stack: Stack) -> Valid:
        """The valid plans of a whole stack of the space, with the counts of just this stack."""
        valid, index = self._known(stack)
        return valid.only(index)

    def mask(self, stack: Stack, pipeline: int) -> np.ndarray:
        """Those of one of its pipelines: shape (rows, machines). It is shared, and must not be written to."""
        valid, index = self._known(stack)
        return np.asarray(valid.mask[index[pipeline]])

    def tally(self, stack: Stack) -> Tally:
        """The counts of a stack: what `of` says, without its masks."""
        key = _key(stack)
        if key not in self._tallies:
            self._tallies[key] = self.of(stack).tally
        return self._tallies[key]

    def _known(self, stack: Stack) -> tuple[Valid, np.ndarray]:
        key = _key(stack)
        if key not in self._masks:
            sizes: dict[tuple[int, int], int] = {}
            index = [sizes.setdefault((one.stages, one.chunks), len(sizes)) for one in stack.pipelines]
            plain = replace(stack, pipelines=tuple(Pipeline(*size) for size in sizes))
            valid = _valid(self.space, plain)
            if sum(held.mask.size for held, _ in self._masks.values()) + valid.mask.size > MOST_KEPT:
                self._masks.clear()
            self._masks[key] = valid, np.array(index)
        return self._masks[key]


def _key(stack: Stack) -> tuple[Any, ...]:
    """What decides the constraints of a stack. Its pipelines are those of the space, which live as long as it does."""
    read = (stack.choices.get(name) for name in READ)
    return stack.choices["runtime"], *read, stack.block, id(stack.pipelines)


def _valid(space: Space, stack: Stack) -> Valid:
    columns = columns_of(space, stack)
    left = np.ones((len(stack.pipelines), stack.rows, len(space.worlds)), dtype=bool)
    removed: dict[str, np.ndarray] = {}
    for sentence, holds in _constraints(space, stack, columns):
        still = left & holds
        before, after = (np.count_nonzero(mask, axis=1) for mask in (left, still))
        removed[sentence] = removed.get(sentence, 0) + (before - after)
        left = still
    return Valid(left, np.count_nonzero(left, axis=1), removed)


def holding(space: Space, group: Group, columns: Columns, tally: Tally) -> np.ndarray:
    """Which plans hold every constraint: shape (rows, machines). What each takes away is counted."""
    left = np.ones((group.rows, len(space.worlds)), dtype=bool)
    tally.consider(left.size)
    for sentence, holds in _constraints(space, group, columns):
        left = tally.hold(sentence, left, np.broadcast_to(holds, left.shape))
    return left


def _constraints(space: Space, group: Group | Stack, columns: Columns) -> Iterator[tuple[str, np.ndarray]]:
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
