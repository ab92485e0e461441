"""The search itself: every group of the space, cheap bounds first. What a bound turns away could not have been among
the best.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.kernel.errors import MissingDatum
from tonnage.search.progress import advance
from tonnage.search.removed import Tally
from tonnage.search.training.best import Best, Candidate, Tell, least_beyond, rung
from tonnage.search.training.bounds import Bounds, LeastOfPoints
from tonnage.search.training.hopeless import Hopeless
from tonnage.search.training.pipelines import Pipeline
from tonnage.search.training.space import Group, Space, Stack
from tonnage.search.training.validity import Columns, Points, Valid, Validity, columns_of, holding
from tonnage.search.training.walk import REFUSALS, Hopeful, Walked, reason, settle, walk

MAX_PLANS_BETWEEN_COLLECTIONS = 30_000  # plans walked between two collections of rings
BOUNDED_AT_ONCE = 32_768  # plans whose bounds are evaluated at once: their arrays stay in the cache of a core
FIRST_TAKEN = 6  # pipelines that are walked before anything else is bounded: of each machine a plan, if one fits
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
    space: Space,
    usable: int,
    *,
    most: int = 5,
    cutoff: Cutoff | None = None,
    bounded: bool = True,
    machines: np.ndarray | None = None,
    tell: Tell | None = None,
) -> BestPlans:
    """The `most` fastest plans of each machine that fit `usable` bytes. `bounded`: False walks every valid plan, for
    the same answer. `machines`: the numbers of those that are searched; plans of the others are counted alone.
    `tell` hears of each plan that becomes the best of its machine.
    """
    run = _Search(space, usable, most, cutoff, machines, tell)
    if bounded:
        run.go()
    else:
        for stack in chain.from_iterable(space.windows()):
            run.take_all(stack)
    return run.found()


class _Surveyed(Struct, frozen=True, eq=False):
    """A pipeline of a stack as its bounds see it. `group`: its plans, with the options that apply; `number`: which of
    all groups it is; `points`: its plans that may be of use; `each`: the bound of each of these, seconds of a token;
    `least`: the least of them on each machine; `promise`: the least accelerator-seconds.
    """

    group: Group
    number: int
    points: Points
    each: np.ndarray
    least: np.ndarray
    promise: float


class _Search:
    def __init__(
        self,
        space: Space,
        usable: float,
        most: int,
        cutoff: Cutoff | None,
        machines: np.ndarray | None,
        tell: Tell | None,
    ):
        self.space, self.usable, self.cutoff = space, usable, cutoff
        self.machines = np.arange(len(space.machines)) if machines is None else machines
        self.best, self.tally, self.bounds = Best(space, most, tell), Tally(), Bounds(space)
        self.validity = Validity(space)
        self.walked = self.beaten = self.unknown = self._unswept = 0
        self.refused: dict[str, int] = {}
        self.hopeless = Hopeless(space)
        self._cut: tuple[np.ndarray, np.ndarray] | None = None
        self._groups = 0  # in the stacks so far

    def go(self) -> None:
        """Search all stacks."""
        for stacks in self.space.windows():
            surveyed: list[_Surveyed] = []
            for stack in stacks:
                more = self.survey(stack)
                if more and not self.best.any:  # a first plan at once: it turns others away before they are kept
                    more.sort(key=lambda one: one.promise)
                    for one in more[:FIRST_TAKEN]:
                        self.take(one)
                    more = more[FIRST_TAKEN:]
                surveyed += more
                self._groups += len(stack.pipelines)
            surveyed.sort(key=lambda one: one.promise)  # the best first: they turn away most of the rest
            for one in surveyed:
                self.take(one)
            self.bounds.forget()

    def survey(self, stack: Stack) -> list[_Surveyed]:
        """Count what the constraints take away, and what bounds do; the pipelines with plans that they leave."""
        tally = self.validity.tally(stack)
        self._count(stack, tally)
        if not tally.left:
            return []
        machines, floor = self.machines, self.bounds.floor(stack)
        if floor is not None:
            machines = machines[self._may_be_of_use(floor)[machines]]
        valid = self.validity.of(stack) if len(machines) else None
        plans = int(valid.plans[:, machines].sum()) if valid is not None else 0
        self.beaten += tally.left - plans
        if valid is None or not plans or self._is_hopeless(stack, plans):
            return []
        every: list[_Surveyed] = []
        for numbers, pipelines in self.space.parts(stack):
            every += self._survey(stack, valid, machines, numbers, pipelines)
        return every

    def _survey(
        self,
        stack: Stack,
        valid: Valid,
        machines: np.ndarray,
        numbers: np.ndarray,
        pipelines: tuple[Pipeline, ...],
    ) -> list[_Surveyed]:
        """As `survey`, of some pipelines, whose plans have the same options."""
        counts = valid.plans[numbers][:, machines].sum(axis=1)
        plans = int(counts.sum())
        if not plans:
            return []
        part = replace(stack, pipelines=pipelines)
        at = int(np.argmax(counts))
        group, mask = part.group(at), valid.mask(numbers[at])
        first = columns_of(self.space, group)
        choices = self._choices(group, first, mask)
        group, part = replace(group, choices=choices), replace(part, choices=choices)
        if self._is_hopeless(group, plans):
            return []
        wanted = np.zeros(mask.shape, dtype=bool)
        wanted[:, machines] = True
        least = self.bounds.of_stack(part, group, first, mask)
        if least is not None:
            wanted &= self._may_be_of_use(np.broadcast_to(least.layers.floor, (stack.rows,))[:, None])
        every: list[_Surveyed] = []
        for which, points in valid.some(numbers, wanted, BOUNDED_AT_ONCE):
            bounded = (points, np.zeros(len(points))) if least is None else self._bounded(least.part(which).at(points))
            every += self._surveyed(part, which.start, numbers, *bounded)
        self.beaten += plans - sum(len(one.points) for one in every)
        return every

    def _bounded(self, bounds: LeastOfPoints) -> tuple[Points, np.ndarray]:
        """The plans that may be of use, and at least how many seconds of a token each takes."""
        bounds = bounds.only(bounds.seconds_per_token() * ROUNDING_MARGIN <= self._cutoffs[bounds.points.machine])
        bounds = bounds.only(bounds.needed() * ROUNDING_MARGIN <= self.usable)
        each = bounds.seconds_per_token(exchanges=True) * ROUNDING_MARGIN  # nearer to the estimate, and dearer
        kept = each <= self._cutoffs[bounds.points.machine]
        return bounds.points.only(kept), each[kept]

    def _may_be_of_use(self, floor: Any) -> np.ndarray:
        """Whether plans that take at least so many accelerator-seconds of a token may be of use: of each machine."""
        return np.asarray(floor * ROUNDING_MARGIN / self.space.worlds <= self._cutoffs)

    def _promise(self, least: np.ndarray) -> float:
        return float(np.min(least * self.space.worlds))

    def _surveyed(
        self, part: Stack, start: int, numbers: np.ndarray, points: Points, each: np.ndarray
    ) -> Iterator[_Surveyed]:
        """The pipelines of these plans, which are counted from `start`; `numbers`: of them in the whole stack."""
        ends = np.flatnonzero(np.diff(points.pipeline, append=-1)) + 1
        for first, end in zip([0, *ends], ends, strict=False):
            own, at = points.only(slice(first, end)), start + int(points.pipeline[first])
            least = np.full(len(self.space.machines), np.inf)
            np.minimum.at(least, own.machine, each[first:end])
            number = self._groups + int(numbers[at])
            yield _Surveyed(part.group(at), number, own, each[first:end], least, self._promise(least))

    def _choices(self, group: Group, columns: Columns, left: np.ndarray) -> Mapping[str, Any]:
        """The choices of a group without the options that do not apply to it (`settle`): asked once for all groups of
        which the same sizes are above 1.
        """
        inner = ((values > 1).any() for values in group.inner.values())
        key = (
            tuple(group.choices.items()),
            group.stages > 1,
            group.chunks > 1,
            tuple(group.layout),
            *inner,
        )
        settled = self.space.settled
        if key not in settled:
            settled[key] = settle(self.space, group, columns, left).choices
        return settled[key]

    def take(self, surveyed: _Surveyed) -> None:
        """Walk the plans of a pipeline that no bound turns away."""
        points, of_use = surveyed.points, np.isfinite(surveyed.least) & (surveyed.least <= self._cutoffs)
        if not of_use[self.machines].any():
            self.beaten += len(points)
            return
        group, points = surveyed.group, points.only(self._is_of_use(surveyed.each, points.machine))
        self.beaten += len(surveyed.points) - len(points)
        if len(points):
            rows, row = np.unique(points.row, return_inverse=True)
            left = np.zeros((len(rows), len(self.space.machines)), dtype=bool)
            left[row, points.machine] = True
            group = group.only(rows)
            self._walk(group, surveyed.number, columns_of(self.space, group), left, self._hopeful)

    def take_all(self, stack: Stack) -> None:
        """Walk every valid plan."""
        valid = self.validity.of(stack)
        self._count(stack, valid.tally)
        for at in range(len(stack.pipelines)):
            if valid.plans[at].any():
                group, left = stack.group(at), valid.mask(at)
                columns = columns_of(self.space, group)
                self._walk(settle(self.space, group, columns, left), at, columns, left, None)

    def _count(self, stack: Stack, tally: Tally) -> None:
        advance("plans", len(stack.pipelines) * stack.rows * len(self.space.machines))
        self.tally.add(tally)

    def _walk(self, group: Group, number: int, columns: Columns, left: np.ndarray, hopeful: Hopeful | None) -> None:
        try:
            walked = walk(self.space, group, columns, left, hopeful)
        except REFUSALS as error:
            self.hopeless.learn(group)
            self._refuse(reason(error), int(left.sum()))
            self.unknown += int(left.sum()) if isinstance(error, MissingDatum) else 0
            return
        self._unswept += walked.plans
        if (
            self._unswept > MAX_PLANS_BETWEEN_COLLECTIONS
        ):  # a walk's objects refer to each other: their arrays would stay until Python looks for such rings
            gc.collect(1)
            self._unswept = 0
        self._keep(group, number, columns, walked)

    def _is_hopeless(self, group: Group | Stack, plans: int) -> bool:
        """Whether its choice was refused whatever the sizes are; its plans are then counted as refused."""
        why = self.hopeless.has(group)
        if why:
            self._refuse(why, plans)
        return bool(why)

    def _refuse(self, reason: str, plans: int) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + plans
        self.beaten += plans

    @property
    def _hopeful(self) -> Hopeful | None:
        """Of which plans the memory is walked, after their time."""
        return self._is_of_use

    def _is_of_use(self, seconds_per_token: np.ndarray, machine: np.ndarray) -> np.ndarray:
        """Whether plans of these seconds may be among the best of their machine, and of all."""
        worst, limits = self.best.worst()[machine], self._limits[machine]
        return np.asarray((rung(seconds_per_token) <= worst) & (seconds_per_token <= limits))

    def _keep(self, group: Group, number: int, columns: Columns, walked: Walked) -> None:
        advance("estimated", walked.plans)
        fits = walked.high <= self.usable
        self.beaten += int(np.count_nonzero(~fits))  # infinite: slower than what was found, and not walked
        self.walked += int(np.count_nonzero(fits))
        self.best.put(group, columns, walked, fits)
        self._cut = None

    @property
    def _limits(self) -> np.ndarray:
        """Seconds of a token of each machine beyond which a plan is of no use."""
        return self._cuts[0]

    @property
    def _cutoffs(self) -> np.ndarray:
        """The same, and beyond which it is not among the best of its machine, whatever rounding does."""
        return self._cuts[1]

    @property
    def _cuts(self) -> tuple[np.ndarray, np.ndarray]:
        """Limits and cutoffs; they change with the best plans."""
        if self._cut is None:
            seconds = np.array([plans[0].seconds / plans[0].tokens if plans else np.inf for plans in self.best.of])
            limits = np.full(len(seconds), np.inf) if self.cutoff is None else self.cutoff(seconds)
            self._cut = limits, np.minimum(limits, least_beyond(self.best.worst()))
        return self._cut

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
    for stack in chain.from_iterable(space.windows()):
        tally.add(validity.tally(stack))
    return tally


def nearest(space: Space, machines: Sequence[int]) -> dict[int, Candidate]:
    """Of each of these machines the plan that needs least: what comes nearest where nothing fits. None for one that
    has no valid plan.
    """
    run = _Nearest(space, np.inf, 1, None, np.array(machines, dtype=np.int64), None)
    run.go()
    return {machine: plans[0] for machine, plans in enumerate(run.best.of) if plans}


class _Nearest(_Search):
    """The same search for the plan of each machine that needs least memory: what is said of seconds is of bytes. Of
    plans that need as much the first one counts.
    """

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._least = np.full(len(self.space.machines), np.inf)
        self._numbers = np.zeros(len(self.space.machines), dtype=np.int64)

    @property
    def _cutoffs(self) -> np.ndarray:
        return self._least

    def _count(self, stack: Stack, tally: Tally) -> None:
        """Nothing: they were counted when none of them was found to fit."""

    def _may_be_of_use(self, floor: Any) -> np.ndarray:
        return np.ones(np.broadcast_shapes(np.shape(floor), self._least.shape), dtype=bool)

    def _promise(self, least: np.ndarray) -> float:
        return float(np.min(least))

    def _bounded(self, bounds: LeastOfPoints) -> tuple[Points, np.ndarray]:
        each = bounds.needed()
        kept = each <= self._least[bounds.points.machine]
        return bounds.points.only(kept), each[kept]

    @property
    def _hopeful(self) -> Hopeful | None:
        return None

    def _is_of_use(self, needed: np.ndarray, machine: np.ndarray) -> np.ndarray:
        return np.asarray(needed <= self._least[machine])

    def _keep(self, group: Group, number: int, columns: Columns, walked: Walked) -> None:
        for machine in np.unique(walked.machine):
            here = np.flatnonzero(walked.machine == machine)
            at = here[np.argmin(walked.high[here])]
            if (walked.high[at], number) < (self._least[machine], self._numbers[machine]):
                self._least[machine], self._numbers[machine] = walked.high[at], number
                self.best.of[machine] = []
                self.best.put(group, columns, walked, np.arange(walked.plans) == at)


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
