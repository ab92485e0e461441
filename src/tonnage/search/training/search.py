"""The search itself: every group of the space, cheap bounds first. What a bound turns away could not have been among
the best.
"""

import gc
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from tonnage.kernel.errors import MissingDatum
from tonnage.search.progress import advance
from tonnage.search.removed import Tally
from tonnage.search.training.best import Best, Candidate, rung
from tonnage.search.training.bounds import Bounds
from tonnage.search.training.hopeless import Hopeless
from tonnage.search.training.space import Group, Space
from tonnage.search.training.validity import Columns, Validity, columns_of, holding
from tonnage.search.training.walk import REFUSALS, Hopeful, Walked, reason, settle, walk

MAX_PLANS_BETWEEN_COLLECTIONS = 30_000  # plans walked between two collections of rings
ROUNDING_MARGIN = 1 - 1e-9  # a bound may meet the estimate, but for rounding
# Seconds of a token of each machine's best plan so far (infinite where there is none) -> those beyond which a plan of
# it is of no use.
Cutoff = Callable[[np.ndarray], np.ndarray]


class BestPlans(Struct, frozen=True, kw_only=True, eq=False):
    """`best`: of each machine. `tally`: all plans considered, and the constraints that ruled some out, the same with
    and without bounds. Of the others `walked` fit and were estimated whole; `beaten` do not fit, are refused by
    their runtime, or are slower than what was found, by a bound or by their time, so that their memory was not
    estimated. `refused`: why, and how many of those that were to be estimated; `unknown`: of how many of these
    something is not known that their time needs.
    """

    best: tuple[tuple[Candidate, ...], ...]
    tally: Tally
    walked: int
    beaten: int
    refused: dict[str, int]
    unknown: int


def search(
    space: Space, usable: int, *, most: int = 5, cutoff: Cutoff | None = None, bounded: bool = True
) -> BestPlans:
    """The `most` fastest plans of each machine that fit `usable` bytes. `bounded`: False walks every valid plan, for
    the same answer.
    """
    run = _Search(space, usable, most, cutoff)
    for groups in space.windows():
        if not bounded:
            for group in groups:
                run.take_all(group)
            run.validity.forget()
            continue
        surveyed = [run.survey(group) for group in groups]
        surveyed.sort(
            key=lambda group: group.promise
        )  # those first that may be fastest: they turn away most of the rest
        for surveyed_group in surveyed:
            run.take(surveyed_group)
        run.bounds.forget()
        run.validity.forget()
    return run.found()


class _Surveyed(Struct, frozen=True, eq=False):
    """A group as its bounds see it. `promise`: the least seconds of a token of its plans that may fit, of which
    there are `plans`.
    """

    group: Group
    promise: float
    plans: int


class _Search:
    def __init__(self, space: Space, usable: int, most: int, cutoff: Cutoff | None):
        self.space, self.usable, self.cutoff = space, usable, cutoff
        self.best, self.tally, self.bounds = Best(space, most), Tally(), Bounds(space)
        self.validity = Validity(space)
        self.walked = self.beaten = self.unknown = self._unswept = 0
        self.refused: dict[str, int] = {}
        self.hopeless = Hopeless(space)

    def survey(self, group: Group) -> _Surveyed:
        """Count what the constraints take away, and what the bound on memory does."""
        advance("plans", group.rows * len(self.space.machines))
        left, tally = self.validity.of(group)
        self.tally.add(tally)
        floor = self.bounds.floor(group)
        if self._is_hopeless(group, tally.left):
            return _Surveyed(group, np.inf, 0)
        if not tally.left or (floor is not None and (floor * ROUNDING_MARGIN / self.space.worlds > self._limits).all()):
            self.beaten += tally.left
            return _Surveyed(group, np.inf, 0)
        columns = columns_of(self.space, group)
        group = settle(self.space, group, columns, left)
        if self._is_hopeless(group, tally.left):
            return _Surveyed(group, np.inf, 0)
        bounds = self.bounds.of(group, columns, left)
        if bounds is None:
            return _Surveyed(group, 0.0, tally.left)
        small = left & (bounds.needed() <= self.usable)
        self.beaten += tally.left - int(small.sum())
        promise = float(np.min(np.broadcast_to(bounds.seconds_per_token(), small.shape), where=small, initial=np.inf))
        return _Surveyed(group, promise, int(small.sum()))

    def take(self, surveyed: _Surveyed) -> None:
        """Walk the plans of a group that no bound turns away."""
        if not surveyed.plans:
            return
        most = min(surveyed.promise * ROUNDING_MARGIN, np.finfo(float).max)
        if surveyed.promise and not ((rung(most) <= self.best.worst()) & (most <= self._limits)).any():
            self.beaten += surveyed.plans
            return
        group = surveyed.group
        columns = columns_of(self.space, group)
        left = self._hopeful(group, columns, self.validity.of(group)[0])
        rows = np.any(left, axis=1)
        if rows.any():
            left_columns = {name: values[rows] for name, values in columns.items()}
            self._walk(group.only(rows), left_columns, left[rows], self._is_hopeful)

    def take_all(self, group: Group) -> None:
        """Walk every valid plan."""
        advance("plans", group.rows * len(self.space.machines))
        left, tally = self.validity.of(group)
        self.tally.add(tally)
        if tally.left:
            columns = columns_of(self.space, group)
            self._walk(settle(self.space, group, columns, left), columns, left, None)

    def _walk(self, group: Group, columns: Columns, left: np.ndarray, hopeful: Hopeful | None) -> None:
        try:
            walked = walk(self.space, group, columns, left, hopeful)
        except REFUSALS as error:
            self.hopeless.learn(group)
            self._refuse(reason(error), int(left.sum()))
            self.unknown += int(left.sum()) if isinstance(error, MissingDatum) else 0
            return
        advance("estimated", walked.plans)
        self._unswept += walked.plans
        if (
            self._unswept > MAX_PLANS_BETWEEN_COLLECTIONS
        ):  # a walk's objects refer to each other: their arrays would stay until Python looks for such rings
            gc.collect(1)
            self._unswept = 0
        self._keep(group, columns, walked)

    def _is_hopeless(self, group: Group, plans: int) -> bool:
        """Whether its choice was refused whatever the sizes are; its plans are then counted as refused."""
        why = self.hopeless.has(group)
        if why:
            self._refuse(why, plans)
        return bool(why)

    def _refuse(self, reason: str, plans: int) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + plans
        self.beaten += plans

    def _is_hopeful(self, seconds_per_token: np.ndarray, machine: np.ndarray) -> np.ndarray:
        return (rung(seconds_per_token) <= self.best.worst()[machine]) & (seconds_per_token <= self._limits[machine])

    def _keep(self, group: Group, columns: Columns, walked: Walked) -> None:
        fits = walked.high <= self.usable
        self.beaten += int(np.count_nonzero(~fits))  # infinite: slower than what was found, and not walked
        self.walked += int(np.count_nonzero(fits))
        self.best.put(group, columns, walked, fits)

    def _hopeful(self, group: Group, columns: Columns, left: np.ndarray) -> np.ndarray:
        """The plans that no bound turns away; those that memory does are counted already."""
        bounds = self.bounds.of(group, columns, left)
        if bounds is None:
            return left
        left = left & (bounds.needed() <= self.usable)
        least = np.broadcast_to(bounds.seconds_per_token(), left.shape) * ROUNDING_MARGIN
        beaten = left & ((rung(least) > self.best.worst()) | (least > self._limits))
        self.beaten += int(np.count_nonzero(beaten))
        return left & ~beaten

    @property
    def _limits(self) -> np.ndarray:
        seconds_per_token = np.array(
            [plans[0].seconds / plans[0].tokens if plans else np.inf for plans in self.best.of]
        )
        return np.full(len(seconds_per_token), np.inf) if self.cutoff is None else self.cutoff(seconds_per_token)

    def found(self) -> BestPlans:
        return BestPlans(
            best=tuple(map(tuple, self.best.of)),
            tally=self.tally,
            walked=self.walked,
            beaten=self.beaten,
            refused=self.refused,
            unknown=self.unknown,
        )


def count_valid(space: Space) -> Tally:
    """Plans of a space, and what the constraints take away: without a bound and without an estimate."""
    tally, validity = Tally(), Validity(space)
    for groups in space.windows():
        for group in groups:
            tally.add(validity.of(group)[1])
        validity.forget()
    return tally


def nearest(space: Space, machines: Sequence[int]) -> dict[int, Candidate]:
    """Of each of these machines the plan that needs least: what comes nearest where nothing fits. None for one that
    has no valid plan.
    """
    bounds, least, hopeless = Bounds(space), Least(space), Hopeless(space)
    of = np.zeros(len(space.machines), dtype=bool)
    of[list(machines)] = True
    for every in space.groups():
        if hopeless.has(every):
            continue
        columns = columns_of(space, every)
        left = holding(space, every, columns, Tally()) & of
        if not left.any():
            continue
        group = settle(space, every, columns, left)
        bound = bounds.of(group, columns, left)
        left &= (0.0 if bound is None else bound.needed()) < least.needed
        if not left.any():
            continue
        try:
            walked = walk(space, group, columns, left)
        except REFUSALS:
            hopeless.learn(group)
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
    """The number of plans on one machine that fit and take fewer seconds per token: the rank of a plan, less one."""
    bounds, count = Bounds(space), 0
    for every in space.groups():
        columns = columns_of(space, every)
        left = holding(space, every, columns, Tally())
        if not left.any():
            continue
        group = settle(space, every, columns, left)
        bound = bounds.of(group, columns, left)
        if bound is not None:
            left = left & (bound.needed() <= usable) & (bound.seconds_per_token() * ROUNDING_MARGIN < seconds_per_token)
        if not left.any():
            continue
        try:
            walked = walk(space, group, columns, left, lambda plan_seconds, _: plan_seconds < seconds_per_token)
        except REFUSALS:
            continue
        count += int(
            np.count_nonzero(
                (walked.seconds / walked.tokens < seconds_per_token * ROUNDING_MARGIN) & (walked.high <= usable)
            )
        )
    return count
