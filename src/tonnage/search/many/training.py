"""Many training runs at once. Rows that differ in sizes alone are walked together, as arrays."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.answer.form import usable_bytes
from tonnage.estimate.answer.training import today, train
from tonnage.estimate.bands import Band, training_band
from tonnage.estimate.host.memory import host_memory
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import RankMemory, TrainingMemory, training_memory
from tonnage.estimate.money.bill import BillOptions, bill
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.rule import LARGEST
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import CHUNK, COLUMNS, shared, together
from tonnage.estimate.step.method import model_flops
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.kernel.formula import Number, is_any
from tonnage.kernel.term import Term
from tonnage.question.subjects.money import OF_TRAINING
from tonnage.search.many.columns import TRAINING, Columns, Figures, answered, column_of, refused, rows_of, value_of
from tonnage.spec import Cluster, TrainingPlan

SHORT = 2  # plans of a group up to which each is walked by itself: an array costs as much as two
SIZES = tuple(name for name in COLUMNS if name not in ("pipeline_parallel_size", "virtual_pipeline_size"))
ONES: dict[str, Any] = dict.fromkeys(SIZES, 1)
# Of the run: a price is one for a step as well.
PRICE = "price_per_accelerator_hour"


class TrainingRow(Struct, frozen=True, eq=False):
    """One training run that is asked about."""

    model: Model
    cluster: Cluster
    options: TrainingOptions
    run: RunOptions
    money: BillOptions
    reserve_bytes: int = 0

    @property
    def key(self) -> Hashable:
        """Equal for rows that ask the same."""
        return (id(self.model), id(self.cluster), self.options, self.run, self.money, self.reserve_bytes)

    @property
    def is_alone(self) -> bool:
        """Whether it asks what arrays do not answer: about a whole run, disks, or machines that are
        bought.
        """
        of_run = any(getattr(self.run, name) is not None for name in self.run.__struct_fields__ if name != PRICE)
        of_disks = any(getattr(self.money, name) is not None for name in OF_TRAINING)
        return of_run or of_disks or self.money.compares or self.model.family == "tensors"


def train_rows(rows: Sequence[TrainingRow | TonnageError]) -> Columns:
    """The figures of each row, by the names of TRAINING; of a row that is an error, or has no answer, the error."""
    return answered(rows, lambda row: row.key, _answer, TRAINING)


def figures_alone(row: TrainingRow) -> Figures:
    """The figures of one row, out of the answer of `train`."""
    answer = train(
        row.model, row.cluster, row.options, row.run, row.money, reserve_bytes=row.reserve_bytes, advise=False
    )
    low, high = answer.band or (None, None)
    figures: Figures = {
        "fits": answer.fits,
        "status": answer.status,
        "needed_bytes": answer.needed_bytes,
        "usable_bytes": answer.usable_bytes,
        "band_low_bytes": low,
        "band_high_bytes": high,
        **{column_of(part): part.value for part in answer.memory.children},
        "step_seconds": value_of(answer.step_time),
    }
    run = answer.run
    if run is not None:
        step_low, step_high = run.step_time_band or (None, None)
        figures |= {
            "step_seconds_low": step_low,
            "step_seconds_high": step_high,
            "tokens_per_second": run.tokens_per_second.value,
            "mfu": run.mfu.value,
            "hfu": run.hfu.value,
            "bound_by": str(run.bound_by),
            "run_seconds": value_of(run.seconds),
        }
        cost = value_of(answer.bill.cost) if answer.bill else None
        if cost is not None and run.seconds:
            figures |= {"run_usd": cost, "usd_per_million_tokens": _per_million(cost, value_of(run.tokens))}
        elif cost is not None and answer.step_time is not None:
            tokens = run.tokens_per_second.value * answer.step_time.value
            figures |= {"step_usd": cost, "usd_per_million_tokens": _per_million(cost, tokens)}
    return {name: value for name, value in figures.items() if value is not None}


def _per_million(usd: Number, tokens: Number) -> Number:
    """USD of a million tokens, where so many cost `usd`."""
    return usd / tokens * 1e6


# ---- Rows in groups, of which each is walked once.


def _answer(rows: list[TrainingRow]) -> list[Figures]:
    found: list[Figures | None] = [None] * len(rows)
    groups: dict[Hashable, list[tuple[int, TrainingPlan]]] = {}
    plans = _Plans()
    for number, row in enumerate(rows):
        try:
            if row.is_alone:
                found[number] = figures_alone(row)
                continue
            plan = plans.of(row)
            usable_bytes(row.cluster, row.reserve_bytes, Question())
        except TonnageError as error:
            found[number] = refused(error)
            continue
        of_all = (id(row.model), id(row.cluster), row.money, getattr(row.run, PRICE), replace(plan, **ONES))
        groups.setdefault(of_all, []).append((number, plan))
    for members in groups.values():
        for numbers, plan in _walked(rows[members[0][0]].model, members):
            for number, figures in zip(numbers, _of_group([rows[number] for number in numbers], plan), strict=True):
                found[number] = figures
    return [figures for figures in found if figures is not None]


class _Plans:
    """The plans of rows, as `training_plan` makes and checks them; once for rows that differ in the micro-batch alone.

    Without a global batch, which it must divide, a micro-batch decides nothing else of a plan.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, TrainingPlan | TonnageError] = {}

    def of(self, row: TrainingRow) -> TrainingPlan:
        size = row.options.micro_batch_size
        if size is None or not 1 <= size <= LARGEST or row.options.global_batch_size is not None:
            return training_plan(row.model, row.cluster, row.options, Question())
        options = replace(row.options, micro_batch_size=1)
        key = (id(row.model), id(row.cluster), options)
        if key not in self._known:
            try:
                self._known[key] = training_plan(row.model, row.cluster, options, Question())
            except TonnageError as error:
                self._known[key] = error
        plan = self._known[key]
        if isinstance(plan, TonnageError):
            raise plan
        return replace(plan, micro_batch_size=size)


def _walked(model: Model, members: list[tuple[int, TrainingPlan]]) -> Iterator[tuple[list[int], TrainingPlan]]:
    """Which rows are walked together, as one plan of arrays, or of numbers where there are few."""
    if len(members) <= SHORT:
        yield from (([number], plan) for number, plan in members)
        return
    numbers = np.array([number for number, _ in members])
    sizes = {name: np.array([getattr(plan, name) for _, plan in members], dtype=np.float64) for name in SIZES}
    keys = together(model, members[0][1], sizes)
    for key in np.unique(keys):
        chosen = np.flatnonzero(keys == key)
        if len(chosen) <= SHORT:
            yield from (([members[place][0]], members[place][1]) for place in chosen.tolist())
            continue
        for part in np.array_split(chosen, -(-len(chosen) // CHUNK)):
            arrays: dict[str, Any] = {name: shared(values[part]) for name, values in sizes.items()}
            yield numbers[part].tolist(), replace(members[part[0]][1], **arrays)


class _HostsTooSmall(Exception):
    """Of some plans of an array."""


def _of_group(rows: Sequence[TrainingRow], plan: TrainingPlan) -> list[Figures]:
    """The figures of rows that are one plan of arrays. Where the group as a whole has none, or the hosts may hold too
    little for some of them, each is asked alone, as are those whose step generates or runs other models.
    """
    if plan.post_training.objective != "sft":
        return [_alone(row) for row in rows]
    try:
        return rows_of(_figures(rows[0], plan, [_usable(row) for row in rows]), len(rows))
    except (TonnageError, _HostsTooSmall):
        return [_alone(row) for row in rows]


def _alone(row: TrainingRow) -> Figures:
    try:
        return figures_alone(row)
    except TonnageError as error:
        return refused(error)


def _usable(row: TrainingRow) -> int:
    return row.cluster.accelerator.memory.usable_bytes - row.reserve_bytes


def _figures(row: TrainingRow, plan: TrainingPlan, usable: list[int]) -> dict[str, Any]:
    """The columns of a plan of arrays, or of numbers. `row`: one of them, with what they share."""
    memory = training_memory(row.model, plan, row.cluster)
    parts, total = _at_peak(memory)
    columns = _verdict(total, np.array(usable), training_band(plan, row.cluster)) | parts
    if _overfills_hosts(row, plan, memory):
        if not plan.is_of_numbers:
            raise _HostsTooSmall
        columns |= {"fits": [False] * len(usable), "status": np.full(len(usable), 3)}
    try:
        timing = Timing(row.model, plan, row.cluster, memory.step, assumed=True)
        columns |= _times(timing, model_flops(row.model, plan, memory.step))
    except MissingDatum:  # nobody knows the time, and there is nothing to bill
        return columns
    return columns | _costs(row, timing)


def _overfills_hosts(row: TrainingRow, plan: TrainingPlan, memory: TrainingMemory) -> bool:
    """Whether the hosts hold too little; of an array for some plan, whichever rank keeps most on them."""
    ranks = [memory.candidates] if plan.is_of_numbers else [(rank,) for rank in memory.candidates]
    hosts = (host_memory(row.model, plan, row.cluster, replace(memory, candidates=each)) for each in ranks)
    return any(host.capacity is not None and is_any(host.memory.value > host.capacity) for host in hosts)


def _verdict(total: Number, usable: np.ndarray, band: Band | None) -> dict[str, Any]:
    """What `Answer` says of these bytes."""
    total = np.asarray(total, dtype=np.float64)
    needed = np.ceil(total)
    low, high = (needed, needed) if band is None else (np.floor(total * band.low), np.ceil(total * band.high))
    fits, misses = high <= usable, low > usable
    tight = ~fits & ~misses
    columns: dict[str, Any] = {
        "fits": [None if between else bool(yes) for yes, between in zip(_each(fits), _each(tight), strict=True)],
        "status": np.where(fits, 0, np.where(misses, 3, 2)),
        "needed_bytes": needed.astype(np.int64),
        "usable_bytes": usable,
    }
    if band is not None:
        columns |= {"band_low_bytes": low.astype(np.int64), "band_high_bytes": high.astype(np.int64)}
    return columns


def _each(values: Any) -> list[Any]:
    return list(np.atleast_1d(values).tolist())


def _at_peak(memory: TrainingMemory) -> tuple[dict[str, Number], Number]:
    """Bytes of each part of the fullest GPU at its peak, and of all of them."""
    if memory.step.scalar:
        peak = memory.fullest.peak
        return {column_of(part): part.value for part in peak.children}, peak.value
    ranks = [_at_peak_of(rank) for rank in _fullest(memory)]
    if len(ranks) == 1:
        return ranks[0]
    place = np.argmax(_stacked([rank.needed for rank in _fullest(memory)]), axis=0)
    return (
        {name: _chosen([parts[name] for parts, _ in ranks], place) for name in ranks[0][0]},
        _chosen([total for _, total in ranks], place),
    )


def _fullest(memory: TrainingMemory) -> list[RankMemory]:
    """The ranks of which each is the fullest in some plan; the first of those that need as much."""
    if len(memory.candidates) == 1:
        return list(memory.candidates)
    place = np.argmax(_stacked([rank.needed for rank in memory.candidates]), axis=0)
    return [memory.candidates[number] for number in np.unique(place).tolist()]


def _at_peak_of(rank: RankMemory) -> tuple[dict[str, Number], Number]:
    moments = list(rank.stage.moments())
    sizes = [np.where(where, term.value, -np.inf) for term, where in moments]
    place = np.argmax(_stacked(sizes), axis=0)
    several = np.unique(place).tolist()
    place = np.searchsorted(several, place)
    terms = [moments[number][0] for number in several]
    parts = {
        column_of(part): _chosen([term.children[number].value for term in terms], place)
        for number, part in enumerate(terms[0].children)
    }
    return parts, _chosen([term.value for term in terms], place)


def _stacked(values: Sequence[Number]) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))


def _chosen(values: Sequence[Number], place: np.ndarray) -> Number:
    """Of each plan the value that `place` says: shape (plans,)."""
    if len(values) == 1:
        return values[0]
    stacked = np.stack([np.broadcast_to(np.asarray(value, dtype=np.float64), place.shape) for value in values])
    return np.take_along_axis(stacked, place[None], axis=0)[0]


def _times(timing: Timing, flops: Term) -> dict[str, Any]:
    """The columns of the time of a step."""
    seconds = timing.term.value
    columns: dict[str, Any] = {
        "step_seconds": seconds,
        "tokens_per_second": timing.tokens_per_second.value,
        "mfu": timing.utilization(flops.value).value,
        "hfu": timing.hardware_utilization.value,
        "bound_by": _bound_by(timing),
    }
    if band := timing.band:
        columns |= {"step_seconds_low": seconds * band.low, "step_seconds_high": seconds * band.high}
    return columns


def _costs(row: TrainingRow, timing: Timing) -> dict[str, Any]:
    """The columns of what a step costs; none where no price is known."""
    step = timing.term
    billed = bill(row.cluster, step, "a step", row.money, Question(), price=getattr(row.run, PRICE), today=today())
    if billed.cost is None:
        return {}
    usd = billed.cost.value
    return {
        "step_usd": usd,
        "usd_per_million_tokens": _per_million(usd, timing.tokens_per_second.value * step.value),
    }


def _bound_by(timing: Timing) -> Any:
    """What takes most of the step, of each plan: a name, or a list of names."""
    if timing.walk.slowest is not None and timing.plan.is_of_numbers:
        return str(timing.bound_by)
    kinds = timing.walk.kinds
    slowest = np.argmax(_stacked([passes.seconds for passes in kinds]), axis=0)
    names = np.empty(slowest.shape, dtype=object)
    shape = np.broadcast_shapes(np.shape(timing.seconds), slowest.shape)
    slowest, names = np.broadcast_to(slowest, shape), np.empty(shape, dtype=object)
    for number in np.unique(slowest).tolist():
        spent = timing.spent_by(kinds[number])
        most = np.argmax(
            np.stack([np.broadcast_to(np.asarray(value, dtype=np.float64), shape) for value in spent.values()]), axis=0
        )
        here = slowest == number
        names[here] = np.array([str(name) for name in spent], dtype=object)[most[here]]
    return names.tolist()
