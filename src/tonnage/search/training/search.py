"""The search itself: every group of the space, cheap bounds first. What a bound turns away could not have been among
the best.
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.kernel.errors import MissingDatum
from tonnage.search.progress import advance
from tonnage.search.removed import Tally
from tonnage.search.training.best import Best, Candidate, Tell, least_beyond, rung
from tonnage.search.training.bounds import Bounds, Least
from tonnage.search.training.hopeless import Hopeless
from tonnage.search.training.pipelines import Pipeline
from tonnage.search.training.space import Group, Space, Stack
from tonnage.search.training.validity import Columns, Valid, Validity, columns_of, holding
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
    for stacks in space.windows():
        if not bounded:
            for stack in stacks:
                run.take_all(stack)
            continue
        surveyed: list[_Surveyed] = []
        for stack in stacks:
            more = run.survey(stack)
            if more and not run.best.any:  # a first plan at once: it turns away others before their memory is bounded
                more.sort(key=lambda one: one.promise)
                for one in more[:FIRST_TAKEN]:
                    run.take(one)
                more = more[FIRST_TAKEN:]
            surveyed += more
        surveyed.sort(key=lambda one: one.promise)  # those first that may be fastest: they turn away most of the rest
        for one in surveyed:
            run.take(one)
        run.bounds.forget()
    return run.found()


class _Surveyed(Struct, frozen=True, eq=False):
    """A pipeline of a stack as its bounds see it. `group`: its plans, with the options that apply; `seconds`: of each
    machine the least seconds of a token of those that may fit and be of use, of which there are `plans`; `promise`:
    the least accelerator-seconds; `least`, `at`: its bounds, and which of their pipelines it is; `stack`, `number`:
    the stack of the space that it is of, likewise.
    """

    group: Group
    seconds: np.ndarray
    promise: float
    plans: int
    least: Least | None
    at: int
    stack: Stack
    number: int


class _Search:
    def __init__(
        self,
        space: Space,
        usable: int,
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
        self._settled: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self._cut: tuple[np.ndarray, np.ndarray] | None = None

    def survey(self, stack: Stack) -> list[_Surveyed]:
        """Count what the constraints take away, and what bounds do; the pipelines with plans that they leave."""
        advance("plans", len(stack.pipelines) * stack.rows * len(self.space.machines))
        tally = self.validity.tally(stack)
        self.tally.add(tally)
        if not tally.left:
            return []
        machines, floor = self.machines, self.bounds.floor(stack)
        if floor is not None:
            machines = machines[floor * ROUNDING_MARGIN / self.space.worlds[machines] <= self._cutoffs[machines]]
        valid = self.validity.of(stack) if len(machines) else None
        plans = int(valid.plans[:, machines].sum()) if valid is not None else 0
        self.beaten += tally.left - plans
        if valid is None or not plans or self._is_hopeless(stack, plans):
            return []
        most = 2 ** max((BOUNDED_AT_ONCE // (stack.rows * len(machines))).bit_length() - 1, 0)
        every: list[_Surveyed] = []
        for numbers, pipelines in self.space.parts(stack, most):
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
        group, mask = part.group(at), valid.mask[numbers[at]]
        first = columns_of(self.space, group)
        choices = self._choices(group, first, mask)
        group, part = replace(group, choices=choices), replace(part, choices=choices)
        if self._is_hopeless(group, plans):
            return []
        least = self.bounds.of_stack(part, group, first, mask)
        if least is None:
            unknown = np.zeros(len(self.space.machines))
            return [
                _Surveyed(part.group(at), unknown, 0.0, int(count), None, at, stack, int(numbers[at]))
                for at, count in enumerate(counts)
                if count
            ]
        columns = columns_of(self.space, part, machines)
        left = valid.mask[numbers][:, :, machines]
        seconds = np.broadcast_to(least.seconds_per_token(columns) * ROUNDING_MARGIN, left.shape)
        left &= seconds <= self._cutoffs[machines]
        if left.any():
            left &= np.broadcast_to(least.needed(columns) * ROUNDING_MARGIN <= self.usable, left.shape)
        kept = np.flatnonzero(left.any(axis=(1, 2)))
        if len(kept):  # nearer to the estimate, and dearer: of the pipelines that are left
            of_kept = {name: values[kept] if values.ndim > 2 else values for name, values in columns.items()}
            near = least.only(kept.tolist()).seconds_per_token(of_kept, exchanges=True) * ROUNDING_MARGIN
            seconds = np.array(seconds)
            seconds[kept] = np.broadcast_to(near, (len(kept), *left.shape[1:]))
            left[kept] &= seconds[kept] <= self._cutoffs[machines]
        counts = np.count_nonzero(left, axis=(1, 2))
        self.beaten += plans - int(counts.sum())
        kept = np.flatnonzero(counts)
        promised = np.full((len(kept), len(self.space.machines)), np.inf)
        promised[:, machines] = np.min(seconds[kept], axis=1, where=left[kept], initial=np.inf)
        promises = np.min(promised * self.space.worlds, axis=1, initial=np.inf)
        return [
            _Surveyed(part.group(at), promised[row], promises[row], int(counts[at]), least, at, stack, int(numbers[at]))
            for row, at in enumerate(kept.tolist())
        ]

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
            group.block,
            *inner,
        )
        if key not in self._settled:
            self._settled[key] = settle(self.space, group, columns, left).choices
        return self._settled[key]

    def take(self, surveyed: _Surveyed) -> None:
        """Walk the plans of a pipeline that no bound turns away."""
        of_use = np.isfinite(surveyed.seconds) & (surveyed.seconds <= self._cutoffs)
        if not of_use[self.machines].any():
            self.beaten += surveyed.plans
            return
        group = surveyed.group
        columns = columns_of(self.space, group)
        left = self._hopeful(surveyed, columns)
        self.beaten += surveyed.plans - int(np.count_nonzero(left))
        rows = np.any(left, axis=1)
        if rows.any():
            left_columns = {name: values[rows] for name, values in columns.items()}
            self._walk(group.only(rows), left_columns, left[rows], self._is_hopeful)

    def _hopeful(self, surveyed: _Surveyed, columns: Columns) -> np.ndarray:
        """The plans that no bound turns away."""
        mask = self.validity.mask(surveyed.stack, surveyed.number)
        left = np.zeros_like(mask)
        left[:, self.machines] = mask[:, self.machines]
        if surveyed.least is None:
            return left
        least = surveyed.least.of_pipeline(surveyed.at, columns)
        left &= least.needed() * ROUNDING_MARGIN <= self.usable
        left &= self._is_of_use(least.seconds_per_token() * ROUNDING_MARGIN, slice(None))
        return left

    def take_all(self, stack: Stack) -> None:
        """Walk every valid plan."""
        advance("plans", len(stack.pipelines) * stack.rows * len(self.space.machines))
        valid = self.validity.of(stack)
        self.tally.add(self.validity.tally(stack))
        for at in range(len(stack.pipelines)):
            if valid.plans[at].any():
                group, left = stack.group(at), valid.mask[at]
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

    def _is_hopeless(self, group: Group | Stack, plans: int) -> bool:
        """Whether its choice was refused whatever the sizes are; its plans are then counted as refused."""
        why = self.hopeless.has(group)
        if why:
            self._refuse(why, plans)
        return bool(why)

    def _refuse(self, reason: str, plans: int) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + plans
        self.beaten += plans

    def _is_hopeful(self, seconds_per_token: np.ndarray, machine: np.ndarray) -> np.ndarray:
        return self._is_of_use(seconds_per_token, machine)

    def _is_of_use(self, seconds_per_token: np.ndarray, machine: Any) -> np.ndarray:
        """Whether plans of these seconds may be among the best of their machine, and of all."""
        worst, limits = self.best.worst()[machine], self._limits[machine]
        return np.asarray((rung(seconds_per_token) <= worst) & (seconds_per_token <= limits))

    def _keep(self, group: Group, columns: Columns, walked: Walked) -> None:
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
    bounds, least, hopeless = Bounds(space), LeastBytes(space), Hopeless(space)
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


class LeastBytes:
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
