"""Which plans of a group hold the rules of estimate.plan.validity, and what each rule takes away."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.frameworks.base import rules_of
from tonnage.estimate.options.parallel import facts_of
from tonnage.estimate.plan.rule import READ, Facts, Rule, reasons
from tonnage.estimate.plan.validity import ACCELERATORS
from tonnage.runtimes import training_runtime
from tonnage.search.removed import Tally
from tonnage.search.training.pipelines import Pipeline, with_choices
from tonnage.search.training.space import SHIFTED, Group, Space, Stack, usual_batch

Columns = dict[str, np.ndarray]
MOST_KEPT = 2**22  # valid plans that are kept, a dozen bytes each: with more all are forgotten
SHIFTED_BATCH = "shifted batch"  # beside the sizes: whether it stands for the batch of its machine


class Points(Struct, frozen=True, eq=False):
    """Plans of a stack: which of its pipelines, of its rows and of the space's machines each of them has. Arrays of
    shape (plans,), ordered by these three.
    """

    pipeline: np.ndarray
    row: np.ndarray
    machine: np.ndarray

    def __len__(self) -> int:
        return len(self.row)

    def only(self, which: np.ndarray | slice) -> "Points":
        return Points(self.pipeline[which], self.row[which], self.machine[which])


def columns_of(space: Space, group: Group | Stack, points: Points | None = None) -> Columns:
    """The sizes of all plans of a group: `inner` as (rows, 1), what the number of accelerators decides as (rows,
    machines). Of a stack those of `points`: shape (plans,).
    """
    machines: Any = slice(None)
    stages: Any = group.stages
    if points is None:
        columns: Columns = {name: values[:, None] for name, values in group.inner.items()}
    else:
        columns = {name: values[points.row] for name, values in group.inner.items()}
        stages, machines = stages[points.pipeline], points.machine
    worlds = space.worlds[machines]
    used = columns["tensor_parallel_size"] * columns["context_parallel_size"] * stages
    fixed_size = space.options.data_parallel_size
    columns["data_parallel_size"] = np.maximum(worlds // used, 1) if fixed_size is None else fixed_size + 0 * used
    for s, batches in space.shifted.items() if (group.inner["global_batch_size"] == SHIFTED).any() else ():
        shifted = (columns["global_batch_size"] == SHIFTED) & (columns["sequence_length"] == s)
        if shifted.any():
            columns["global_batch_size"] = np.where(shifted, batches[machines], columns["global_batch_size"])
    sequences_of_ranks = columns["micro_batch_size"] * columns["data_parallel_size"]
    fixed_microbatches = space.options.num_microbatches
    counted = np.maximum(columns["global_batch_size"] // sequences_of_ranks, 1)
    columns["num_microbatches"] = np.where(columns["global_batch_size"] == 0, fixed_microbatches or stages, counted)
    return columns


class Valid(Struct, frozen=True, eq=False):
    """Which plans of a stack hold every constraint, and what each constraint takes away.

    Pipelines with as many stages and chunks, however their layers are dealt out, have the same plans: `index` is which
    of these sizes each pipeline of the stack has. `points`: the plans of each of the sizes; `starts`: where those of
    each begin; `counts`: how many each has on each machine, shape (sizes, machines); `removed`: of each, by constraint,
    shape (sizes,).
    """

    points: Points
    index: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    removed: Mapping[str, np.ndarray]
    rows: int

    @property
    def plans(self) -> np.ndarray:
        """How many plans are left of each pipeline on each machine: shape (pipelines, machines)."""
        return np.asarray(self.counts[self.index])

    def mask(self, pipeline: int) -> np.ndarray:
        """The plans of one pipeline: shape (rows, machines)."""
        left = np.zeros((self.rows, self.counts.shape[1]), dtype=bool)
        at = self.index[pipeline]
        own = self.points.only(slice(self.starts[at], self.starts[at + 1]))
        left[own.row, own.machine] = True
        return left

    def some(self, pipelines: np.ndarray, which: np.ndarray, at_once: int) -> Iterator[tuple[slice, Points]]:
        """The plans of these pipelines, about so many at once: which of the pipelines, and their plans, whose
        pipelines are counted from the first of these. `which`: those that are wanted, shape (rows, machines).
        """
        wanted = which[self.points.row, self.points.machine]
        points = self.points.only(wanted)
        starts = np.searchsorted(points.pipeline, np.arange(len(self.starts)))
        index = self.index[pipelines]
        lengths = np.diff(starts)[index]
        batches = np.cumsum(lengths) // at_once
        ends = [*np.flatnonzero(np.diff(batches)) + 1, len(pipelines)]
        for first, end in zip([0, *ends], ends, strict=False):
            own = lengths[first:end]
            pipeline = np.repeat(np.arange(end - first), own)
            place = np.arange(len(pipeline)) - np.repeat(np.cumsum(own) - own - starts[index[first:end]], own)
            if len(place):
                yield slice(int(first), int(end)), Points(pipeline, points.row[place], points.machine[place])

    @property
    def tally(self) -> Tally:
        """The counts of all its plans."""
        tally = Tally()
        tally.consider(len(self.index) * self.rows * self.counts.shape[1])
        for sentence, counts in self.removed.items():
            tally.remove(sentence, int(counts[self.index].sum()))
        return tally


class Validity:
    """The valid plans of the stacks of a space, asked once for all that differ only in names that no constraint reads,
    or in how layers are dealt out; and once for all accelerators that come in the same numbers (Space.on).
    """

    def __init__(self, space: Space):
        self.space = space
        self._masks: dict[tuple[Any, ...], Valid] = space.valid_masks
        self._tallies: dict[tuple[Any, ...], Tally] = space.valid_tallies

    def of(self, stack: Stack) -> Valid:
        """The valid plans of a whole stack of the space."""
        key = _key(stack)
        if key not in self._masks:
            valid = _valid(self.space, stack)
            if sum(len(held.points) for held in self._masks.values()) + len(valid.points) > MOST_KEPT:
                self._masks.clear()
            self._masks[key] = valid
        return self._masks[key]

    def tally(self, stack: Stack) -> Tally:
        """The counts of a stack: kept longer than what `of` says."""
        key = _key(stack)
        if key not in self._tallies:
            self._tallies[key] = self.of(stack).tally
        return self._tallies[key]


def _key(stack: Stack) -> tuple[Any, ...]:
    """What decides the constraints of a stack. Its pipelines are those of the space, which live as long as it does."""
    read = (stack.choices.get(name) for name in READ)
    return stack.choices["runtime"], *read, stack.block, id(stack.pipelines)


def _valid(space: Space, stack: Stack) -> Valid:
    kinds: dict[tuple[int, int], int] = {}
    index = np.array([kinds.setdefault((one.stages, one.chunks), len(kinds)) for one in stack.pipelines])
    plain = replace(stack, pipelines=tuple(Pipeline(*kind) for kind in kinds))
    facts, rules = _asked(space, plain)
    points = _dividing(space, plain, facts)
    every = plain.rows * len(space.worlds)
    removed = {ACCELERATORS.reason(facts): every - np.bincount(points.pipeline, minlength=len(kinds))}
    sizes = _sizes(space, plain, columns_of(space, plain, points), points)
    for sentence, holds in _constraints(facts, sizes, [rule for rule in rules if rule is not ACCELERATORS]):
        held = np.broadcast_to(holds, (len(points),))
        broken = np.bincount(points.pipeline[~held], minlength=len(kinds))
        removed[sentence] = removed.get(sentence, 0) + broken
        if broken.any():  # the next ones are asked of the others alone
            points = points.only(held)
            sizes.update({name: values[held] for name, values in sizes.items()})
    plans = np.bincount(points.pipeline * len(space.worlds) + points.machine, minlength=len(kinds) * len(space.worlds))
    return Valid(
        points=points,
        index=index,
        starts=np.searchsorted(points.pipeline, np.arange(len(kinds) + 1)),
        counts=plans.reshape(len(kinds), len(space.worlds)),
        removed=removed,
        rows=plain.rows,
    )


def _dividing(space: Space, stack: Stack, facts: Facts) -> Points:
    """The plans whose replicas divide their machine, asked once for each size of a replica: where machines have many
    different numbers of accelerators these are few, and all else is asked of them alone.
    """
    ranks = stack.inner["tensor_parallel_size"] * stack.inner["context_parallel_size"]
    replicas, which = np.unique(stack.stages[:, None] * ranks, return_inverse=True)
    one = {"tensor_parallel_size": replicas[:, None], "pipeline_parallel_size": 1, "context_parallel_size": 1}
    divides = np.asarray(ACCELERATORS.holds(facts, {**one, "accelerators": space.worlds}))
    pair, machine = np.nonzero(divides[which.reshape(-1)])
    pipeline, row = np.divmod(pair, stack.rows)
    return Points(pipeline.astype(np.int32), row.astype(np.int32), machine.astype(np.int32))


def holding(space: Space, group: Group, columns: Columns, tally: Tally) -> np.ndarray:
    """Which plans hold every constraint: shape (rows, machines). What each takes away is counted."""
    left = np.ones((group.rows, len(space.worlds)), dtype=bool)
    tally.consider(left.size)
    facts, rules = _asked(space, group)
    for sentence, holds in _constraints(facts, _sizes(space, group, columns), rules):
        left = tally.hold(sentence, left, np.broadcast_to(holds, left.shape))
    return left


def _asked(space: Space, group: Group | Stack) -> tuple[Facts, list[Rule]]:
    """The rules of plans, and what all of a group share. Pipelines that cannot be are not made
    (search.training.pipelines), or are given, and refused as a whole.
    """
    runtime = training_runtime(group.choices["runtime"])
    facts = facts_of(space.model, runtime, with_choices(space.options, group.names))
    return facts, [rule for rule in rules_of(runtime) if not rule.of_pipelines]


def _sizes(space: Space, group: Group | Stack, columns: Columns, points: Points | None = None) -> Columns:
    """The columns, and what else the constraints read."""
    shifted = group.inner["global_batch_size"] == SHIFTED
    has_shifted = shifted.any()
    of_pipelines: Any = group.stages, group.chunks
    if points is None:
        worlds, shifted = space.worlds[None], shifted[:, None]
    else:
        of_pipelines = (values[points.pipeline] for values in of_pipelines)
        worlds, shifted = space.worlds[points.machine], shifted[points.row]
    stages = dict(zip(("pipeline_parallel_size", "virtual_pipeline_size"), of_pipelines, strict=True))
    return {**columns, **stages, "accelerators": worlds, **({SHIFTED_BATCH: shifted} if has_shifted else {})}


def _constraints(facts: Facts, sizes: Columns, rules: Sequence[Rule]) -> Iterator[tuple[str, np.ndarray]]:
    """The constraints of plans as text, each with the plans that hold it. Each reads `sizes` when it is asked for: they
    may be narrowed to what the ones before have left.
    """
    is_shifted = SHIFTED_BATCH in sizes
    yield from reasons(facts, sizes, rules)
    if is_shifted:
        usual = usual_batch(sizes["sequence_length"])
        yield "each global batch is tried once", ~sizes[SHIFTED_BATCH] | (sizes["global_batch_size"] != usual)
