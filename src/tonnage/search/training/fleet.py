"""The best plan of every machine, fleet by fleet: what is found on one turns away what would be worse on the next."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tonnage.architectures import Model
from tonnage.errors import TonnageError
from tonnage.estimate.bill import BillOptions, usd_per_hour
from tonnage.estimate.run_options import RunOptions
from tonnage.estimate.training_options import TrainingOptions
from tonnage.search.removed import Tally
from tonnage.search.training.best import Candidate
from tonnage.search.training.ideal import ideal_seconds
from tonnage.search.training.machines import Fleet, between
from tonnage.search.training.objective import Goal
from tonnage.search.training.options import Vary
from tonnage.search.training.search import search
from tonnage.search.training.space import Space
from tonnage.spec import Cluster


class Entry(Struct, frozen=True, kw_only=True, eq=False):
    """A machine and its best plans, the best first. `usd`: an hour of an accelerator, None where no price is known. `value`: of the goal."""

    machine: Cluster
    plans: tuple[Candidate, ...]
    usd: float | None
    value: float

    @property
    def seconds_per_token(self) -> float:
        return self.plans[0].seconds / self.plans[0].tokens

    @property
    def usd_per_token(self) -> float | None:
        return None if self.usd is None else self.seconds_per_token * self.machine.size * self.usd / 3600


class Searched(Struct, kw_only=True):
    """All machines that carry the model, and what was looked at on the way. `refused`: accelerators of which nothing can be said, and why; `unknown`: plans that
    are valid and of which somebody did not publish something;
    `unpriced`: accelerators that nobody sells; `passed`: machines whose fastest imaginable plan is no use."""

    entries: list[Entry]
    tally: Tally
    walked: int = 0
    beaten: int = 0
    machines: int = 0
    passed: int = 0
    refused: dict[str, TonnageError] = {}
    unknown: int = 0
    unpriced: dict[str, None] = {}
    spaces: list[tuple[Space, int]] = []


class Searcher:
    """One search over several fleets: the `top` machines, and the `each` best plans of every one."""

    def __init__(
        self, model: Model, options: TrainingOptions, run: RunOptions, money: BillOptions, goal: Goal, vary: Vary, *,
        reserve: int = 0, top: int = 5, each: int = 1, bounded: bool = True, whole_front: bool = False,
    ):  # fmt: skip
        self.model, self.options, self.run, self.money, self.goal, self.vary = model, options, run, money, goal, vary
        self.reserve, self.top, self.each, self.bounded, self.whole_front = reserve, top, each, bounded, whole_front
        self.found = Searched(entries=[], tally=Tally())
        self.strict = bounded and not whole_front and bool(np.isfinite([goal.slowest, goal.dearest]).any())

    def go(self, fleets: Sequence[Fleet]) -> Searched:
        """Search all of them; then whole nodes between the best open machines and the next smaller ones, where fewer may do."""
        every = sorted(fleets, key=self._promise)
        self._all(every)
        if self.strict and not any(np.isfinite(entry.value) for entry in self.found.entries):
            self.found, self.strict = (
                Searched(entries=[], tally=Tally()),
                False,
            )  # nothing keeps the limits: what comes nearest?
            self._all(every)
        if self.goal.objective == "fewest" or np.isfinite(self.goal.slowest):
            self._refine(fleets)
        self.found.entries.sort(key=_order)
        return self.found

    def _all(self, fleets: Sequence[Fleet]) -> None:
        for fleet in fleets:
            if np.isnan(self._prices(fleet.machines)).all():
                self.found.unpriced[fleet.accelerator.name] = None
            self.take(fleet.machines)

    def _promise(self, fleet: Fleet) -> float:
        """What the goal would be of the fleet's fastest imaginable plan: the best come first, and the rest are often passed over."""
        space = Space(self.model, fleet.machines, self.options, self.vary)
        try:
            least = ideal_seconds(space)
        except TonnageError:
            return np.inf
        if self.goal.objective == "fewest":
            return -float(fleet.accelerator.memory.usable_bytes)
        usd = self._prices(fleet.machines)
        value = (
            self.goal.cost(np.full(len(usd), least) / space.worlds, space.worlds, usd)
            if self.goal.objective == "cheapest"
            else least / space.worlds
        )
        return float(np.min(np.where(np.isnan(value), np.inf, value)))

    def take(self, machines: Sequence[Cluster]) -> None:
        """Search one kind of accelerator; what cannot be said of it is noted, and ends nothing."""
        name = machines[0].accelerator.name
        try:
            self._take(machines)
        except TonnageError as error:
            self.found.refused.setdefault(name, error)

    def _take(self, machines: Sequence[Cluster]) -> None:
        # where a node is used in part its links and its kernels are those of the whole node, but one accelerator has defaults of its own
        for part in (machines[:1], machines[1:]) if machines[0].size == 1 else (machines,):
            if part:
                self._search(part)

    def _search(self, machines: Sequence[Cluster]) -> None:
        machines = self._promising(machines)
        if not machines:
            return
        usd = self._prices(machines)
        space = Space(self.model, machines, self.options, self.vary, usd)
        usable = machines[0].accelerator.memory.usable_bytes - self.reserve
        made = search(space, usable, most=self.each, cutoff=self._cutoff(space.worlds, usd), bounded=self.bounded)
        self.found.tally.add(made.tally)
        self.found.walked += made.walked
        self.found.unknown += made.unknown
        self.found.beaten += made.beaten
        self.found.machines += len(machines)
        self.found.spaces.append((space, usable))
        for machine, price, plans in zip(machines, usd, made.best, strict=True):
            if plans:
                self.found.entries.append(self._entry(machine, None if np.isnan(price) else float(price), plans))

    def _promising(self, machines: Sequence[Cluster]) -> Sequence[Cluster]:
        """Those whose fastest imaginable plan would be among the best."""
        best = self._kth([entry.value for entry in self.found.entries])
        if self.whole_front or not self.bounded or not (np.isfinite(best) or self.strict):
            return machines
        space = Space(self.model, machines, self.options, self.vary)
        least = ideal_seconds(space) / space.worlds
        limits = self._limits(best, space.worlds, self._prices(machines))
        kept = [machine for machine, of_use in zip(machines, (least <= limits) & (limits > 0), strict=True) if of_use]
        self.found.passed += len(machines) - len(kept)
        return kept

    def _limits(self, best: float, worlds: np.ndarray, usd: np.ndarray) -> np.ndarray:
        """Seconds of a token beyond which a plan is of no use: worse than `best`, or `strict`ly too late or too dear."""
        limits = self.goal.limits(best, worlds, usd)
        return np.minimum(limits, self.goal.latest(worlds, usd)) if self.strict else limits

    def _prices(self, machines: Sequence[Cluster]) -> np.ndarray:
        """USD of an accelerator and hour, NaN where no price is known."""
        found = [self._usd(machine) for machine in machines]
        return np.array([np.nan if price is None else price for price in found])

    def _kth(self, values: Sequence[float]) -> float:
        """The value that a machine must reach to be shown."""
        ordered = np.sort(values)
        return float(ordered[self.top - 1]) if len(ordered) >= self.top else np.inf

    def _entry(self, machine: Cluster, usd: float | None, plans: tuple[Candidate, ...]) -> Entry:
        each = np.array([plans[0].seconds / plans[0].tokens])
        value = self.goal.value(each, np.array([machine.size]), np.array([np.nan if usd is None else usd]))
        return Entry(machine=machine, plans=plans, usd=usd, value=float(value[0]))

    def _usd(self, machine: Cluster) -> float | None:
        given = self.run.price_per_accelerator_hour
        return given if given is not None else usd_per_hour(machine, self.money)

    def _cutoff(self, worlds: np.ndarray, usd: np.ndarray):  # type: ignore[no-untyped-def]
        """What is of use when so many machines do better; nothing is turned away where every machine's best plan is asked for."""
        if self.whole_front:
            return None
        earlier = [entry.value for entry in self.found.entries]

        def limits(best: np.ndarray) -> np.ndarray:
            return self._limits(self._kth([*earlier, *self.goal.value(best, worlds, usd)]), worlds, usd)

        return limits

    def _refine(self, fleets: Sequence[Fleet]) -> None:
        """Between the smallest machine of a fleet that does and the next smaller one that does not."""
        for fleet in fleets:
            here = [
                entry
                for entry in self.found.entries
                if entry.machine.accelerator.name == fleet.accelerator.name and np.isfinite(entry.value)
            ]
            if not fleet.is_open or not here:
                continue
            least = min(here, key=lambda entry: entry.machine.size).machine
            smaller = [machine for machine in fleet.machines if machine.size < least.size]
            if smaller and least.num_nodes > 1 and (more := between(smaller[-1], least)):
                self.take(more)


def _order(entry: Entry) -> tuple[float, float, int, str]:
    """The goal's value; then speed; then fewer accelerators; then the name."""
    return entry.value, entry.seconds_per_token, entry.machine.size, entry.machine.name
