"""The search itself: every group of the space, cheap bounds first. What a bound turns away could not have been among the best."""

import gc
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from tonnage.errors import MissingDatum
from tonnage.search.progress import advance
from tonnage.search.removed import Tally
from tonnage.search.training.best import Best, Candidate, rung
from tonnage.search.training.bounds import Bounds
from tonnage.search.training.space import Group, Space
from tonnage.search.training.validity import Columns, columns_of, holding
from tonnage.search.training.walk import REFUSALS, Hopeful, Walked, reason, walk

FITS = "the fullest rank fits the accelerator's memory, with the high end of the error band"
SWEPT = 30_000  # plans walked between two collections of rings
CARE = 1 - 1e-9  # a bound may meet the estimate, but for rounding
# Seconds of a token of each machine's best plan so far (infinite where there is none) -> those beyond which a plan of it is of no use.
Cutoff = Callable[[np.ndarray], np.ndarray]


class Found(Struct, frozen=True, kw_only=True, eq=False):
    """`best`: of each machine. `tally`: all plans considered, and what took them away; `beaten`: slower than what was found, by a bound or by their
    time; where the bound is of a whole group, valid or not; `walked`: how many fit and were estimated whole. A plan considered is in one of the
    three, and in one alone. `unknown`: of how many something is not known that their time needs."""

    best: tuple[tuple[Candidate, ...], ...]
    tally: Tally
    walked: int
    beaten: int
    unknown: int


def search(space: Space, usable: int, *, most: int = 5, cutoff: Cutoff | None = None, bounded: bool = True) -> Found:
    """The `most` fastest plans of each machine that fit `usable` bytes. `bounded`: False walks every valid plan, for the same answer."""
    run = _Search(space, usable, most, cutoff)
    for groups in space.windows():
        if not bounded:
            for group in groups:
                run.take_all(group)
            continue
        surveyed = [run.survey(group) for group in groups]
        surveyed.sort(key=lambda each: each.promise)  # those first that may be fastest: they turn away most of the rest
        for each in surveyed:
            run.take(each)
        run.bounds.forget()
    return run.found()


class _Surveyed(Struct, frozen=True, eq=False):
    """A group as its bounds see it. `promise`: the least seconds of a token of its plans that may fit, of which there are `plans`."""

    group: Group
    promise: float
    plans: int


class _Search:
    def __init__(self, space: Space, usable: int, most: int, cutoff: Cutoff | None):
        self.space, self.usable, self.cutoff = space, usable, cutoff
        self.best, self.tally, self.bounds = Best(space, most), Tally(), Bounds(space)
        self.walked = self.beaten = self.large = self.unknown = self._unswept = 0
        self.refused: dict[str, int] = {}

    def survey(self, group: Group) -> _Surveyed:
        """Count what the constraints take away, and what the bound on memory does."""
        advance("plans", group.rows * len(self.space.machines))
        floor = self.bounds.floor(group)
        if floor is not None and (floor * CARE / self.space.worlds > self._limits).all():
            plans = group.rows * len(self.space.machines)
            self.tally.consider(plans)
            self.beaten += plans
            return _Surveyed(group, np.inf, 0)
        columns = columns_of(self.space, group)
        left = holding(self.space, group, columns, self.tally)
        bounds = self.bounds.of(group, columns, left) if left.any() else None
        if bounds is None:
            return _Surveyed(group, 0.0 if left.any() else np.inf, int(left.sum()))
        small = left & (bounds.needed() <= self.usable)
        self.large += int(left.sum()) - int(small.sum())
        promise = float(np.min(np.broadcast_to(bounds.seconds_per_token(), small.shape), where=small, initial=np.inf))
        return _Surveyed(group, promise, int(small.sum()))

    def take(self, each: _Surveyed) -> None:
        """Walk the plans of a group that no bound turns away."""
        if not each.plans:
            return
        most = min(each.promise * CARE, np.finfo(float).max)
        if each.promise and not ((rung(most) <= self.best.worst()) & (most <= self._limits)).any():
            self.beaten += each.plans
            return
        group = each.group
        columns = columns_of(self.space, group)
        left = self._hopeful(group, columns, holding(self.space, group, columns, Tally()))
        rows = np.any(left, axis=1)
        if rows.any():
            kept = {name: values[rows] for name, values in columns.items()}
            self._walk(group.only(rows), kept, left[rows], self._is_hopeful)

    def take_all(self, group: Group) -> None:
        """Walk every valid plan."""
        advance("plans", group.rows * len(self.space.machines))
        columns = columns_of(self.space, group)
        left = holding(self.space, group, columns, self.tally)
        if left.any():
            self._walk(group, columns, left, None)

    def _walk(self, group: Group, columns: Columns, left: np.ndarray, hopeful: Hopeful | None) -> None:
        try:
            walked = walk(self.space, group, columns, left, hopeful)
        except REFUSALS as error:
            self.refused[reason(error)] = self.refused.get(reason(error), 0) + int(left.sum())
            self.unknown += int(left.sum()) if isinstance(error, MissingDatum) else 0
            return
        advance("estimated", walked.plans)
        self._unswept += walked.plans
        if (
            self._unswept > SWEPT
        ):  # a walk's objects refer to each other: their arrays would stay until Python looks for such rings
            gc.collect(1)
            self._unswept = 0
        self._keep(group, columns, walked)

    def _is_hopeful(self, seconds_per_token: np.ndarray, machine: np.ndarray) -> np.ndarray:
        return (rung(seconds_per_token) <= self.best.worst()[machine]) & (seconds_per_token <= self._limits[machine])

    def _keep(self, group: Group, columns: Columns, walked: Walked) -> None:
        fits = walked.high <= self.usable
        unasked = np.isinf(walked.needed)  # slower than what was found: their memory was not walked
        self.beaten += int(np.count_nonzero(unasked))
        self.large += int(np.count_nonzero(~fits & ~unasked))
        self.walked += int(np.count_nonzero(fits))
        self.best.put(group, columns, walked, fits)

    def _hopeful(self, group: Group, columns: Columns, left: np.ndarray) -> np.ndarray:
        """The plans that no bound turns away; those that memory does are counted already."""
        bounds = self.bounds.of(group, columns, left)
        if bounds is None:
            return left
        left = left & (bounds.needed() <= self.usable)
        least = np.broadcast_to(bounds.seconds_per_token(), left.shape) * CARE
        beaten = left & ((rung(least) > self.best.worst()) | (least > self._limits))
        self.beaten += int(np.count_nonzero(beaten))
        return left & ~beaten

    @property
    def _limits(self) -> np.ndarray:
        found = np.array([each[0].seconds / each[0].tokens if each else np.inf for each in self.best.of])
        return np.full(len(found), np.inf) if self.cutoff is None else self.cutoff(found)

    def found(self) -> Found:
        for sentence, plans in self.refused.items():
            self.tally.remove(sentence, plans)
        self.tally.remove(FITS, self.large)
        return Found(
            best=tuple(map(tuple, self.best.of)),
            tally=self.tally,
            walked=self.walked,
            beaten=self.beaten,
            unknown=self.unknown,
        )


def nearest(space: Space, machines: Sequence[int]) -> dict[int, Candidate]:
    """Of each of these machines the plan that needs least: what comes nearest where nothing fits. None for one that has no valid plan."""
    bounds, least = Bounds(space), Least(space)
    of = np.zeros(len(space.machines), dtype=bool)
    of[list(machines)] = True
    for group in space.groups():
        columns = columns_of(space, group)
        left = holding(space, group, columns, Tally()) & of
        if not left.any():
            continue
        bound = bounds.of(group, columns, left)
        left &= (0.0 if bound is None else bound.needed()) < least.needed
        if not left.any():
            continue
        try:
            walked = walk(space, group, columns, left)
        except REFUSALS:
            continue
        least.put(group, columns, walked)
    return least.of


class Least:
    """The plan of each machine that needs least memory."""

    def __init__(self, space: Space):
        self.space, self.of = space, dict[int, Candidate]()
        self.needed = np.full(len(space.machines), np.inf)

    def put(self, group: Group, columns: Columns, walked: Walked) -> None:
        for machine in np.unique(walked.machine):
            here = np.flatnonzero(walked.machine == machine)
            at = here[np.argmin(walked.high[here])]
            if walked.high[at] < self.needed[machine]:
                one = Best(self.space, 1)
                one.put(group, columns, walked, np.arange(walked.plans) == at)
                self.of[int(machine)], self.needed[machine] = one.of[machine][0], walked.high[at]


def faster(space: Space, usable: int, seconds_per_token: float) -> int:
    """How many plans of a space of one machine fit and take fewer seconds for a token: the rank of a plan, less one."""
    bounds, count = Bounds(space), 0
    for group in space.groups():
        columns = columns_of(space, group)
        left = holding(space, group, columns, Tally())
        bound = bounds.of(group, columns, left) if left.any() else None
        if bound is not None:
            left = left & (bound.needed() <= usable) & (bound.seconds_per_token() * CARE < seconds_per_token)
        if not left.any():
            continue
        try:
            walked = walk(space, group, columns, left, lambda each, _: each < seconds_per_token)
        except REFUSALS:
            continue
        count += int(
            np.count_nonzero((walked.seconds / walked.tokens < seconds_per_token * CARE) & (walked.high <= usable))
        )
    return count
