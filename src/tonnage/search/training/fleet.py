"""The best plan of every machine, fleet by fleet. The best plan so far, the shortest imaginable step and the share of
a run that trains bound the search on the next machine.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.plan import FoundPlanDocument
from tonnage.estimate.money.bill import rent
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.run.checkpoint import saved_bytes
from tonnage.estimate.run.recovery import spare_accelerators
from tonnage.estimate.run.reliability import reliability
from tonnage.estimate.run.run import LEAST_GOODPUT
from tonnage.estimate.step_time.time import Timing
from tonnage.formulas.cost import rent_usd
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.term import Term
from tonnage.search.progress import advance, expect, find
from tonnage.search.removed import Tally
from tonnage.search.training.best import Candidate
from tonnage.search.training.machines import Fleet, between
from tonnage.search.training.objective import Goal
from tonnage.search.training.options import TrainingQuestion
from tonnage.search.training.search import Cutoff, count_valid, search
from tonnage.search.training.space import Space
from tonnage.spec import Cluster, TrainingPlan


class Entry(Struct, frozen=True, kw_only=True, eq=False):
    """A machine and its best plans, the best first. `usd`: an hour of an accelerator, None where no price is known;
    `goodput`: the part of a run that trains; `value`: of the goal.
    """

    machine: Cluster
    plans: tuple[Candidate, ...]
    usd: float | None = None
    goodput: float = 1.0
    value: float = np.inf

    @property
    def seconds_per_token(self) -> float:
        """Seconds of a token while steps run, without failures and checkpoints."""
        return self.plans[0].seconds / self.plans[0].tokens

    @property
    def run_seconds_per_token(self) -> float:
        """Seconds of a token of the whole run, with failures and checkpoints."""
        return self.seconds_per_token / self.goodput if self.goodput else np.inf

    @property
    def usd_per_token(self) -> float | None:
        """USD per token of the whole run."""
        if self.usd is None:
            return None
        return float(rent_usd.evaluate(nodes=self.machine.size, tau=self.run_seconds_per_token, USD_hour=self.usd))


class Searched(Struct, kw_only=True):
    """All machines that carry the model, and what was looked at on the way. `refused`: accelerators of which nothing
    can be said, and why;
    `reasons`: why runtimes refuse plans that were to be estimated, and how many of these;
    `unknown`: valid plans whose time needs something that nobody published; `unpriced`: accelerators that nobody
    sells; `passed`: machines whose fastest imaginable plan is no use; `spaces`: that were searched, with the bytes
    of an accelerator that are usable and the numbers of the machines that were.
    """

    tally: Tally
    entries: list[Entry] = []
    walked: int = 0
    beaten: int = 0
    machines: int = 0
    passed: int = 0
    unknown: int = 0
    refused: dict[str, TonnageError] = {}
    reasons: dict[str, int] = {}
    unpriced: dict[str, None] = {}
    spaces: list[tuple[Space, int, np.ndarray]] = []


class Searcher:
    """One search over several fleets: the `top` machines, and the `plans_of_machine` best plans of every one."""

    def __init__(self, model: Model, question: TrainingQuestion, goal: Goal, *, plans_of_machine: int = 1):
        self.model, self.asked, self.goal, self.each, self.top = (
            model,
            question,
            goal,
            plans_of_machine,
            question.search.shown,
        )
        self.bounded, self.whole_front = not question.search.exhaustive, bool(question.search.pareto)
        self.rent = rent(question.money, question.run.price_per_accelerator_hour)
        self._ideals: dict[str, float] = {}
        self._spaces: dict[tuple[int, ...], Space] = {}
        self._begin(strict=self.bounded and not self.whole_front and goal.is_limited)

    def _begin(self, *, strict: bool) -> None:
        """Start a search. `strict`: plans that miss a limit are left out."""
        self.found, self.strict, self._told = Searched(tally=Tally()), strict, np.inf

    def go(self, fleets: Sequence[Fleet]) -> Searched:
        """Search all of them; then whole nodes between the best open machines and the next smaller ones, where fewer
        may do.
        """
        every = sorted(fleets, key=self._promise)
        self._all(every)
        if self.strict and not any(np.isfinite(entry.value) for entry in self.found.entries):
            self._begin(strict=False)  # nothing keeps the limits: what comes nearest?
            self._all(every)
        if self.goal.objective == "fewest" or np.isfinite(self.goal.slowest):
            self._refine(fleets)
        self.found.entries.sort(key=_order)
        return self.found

    def _all(self, fleets: Sequence[Fleet]) -> None:
        expect("machines", sum(len(fleet.machines) for fleet in fleets))
        expect("plans", sum(self._space(part).plans for fleet in fleets for part in _parts(fleet.machines)))
        for fleet in fleets:
            if np.isnan(self._prices(fleet.machines)).all():
                self.found.unpriced[fleet.accelerator.name] = None
            self.take(fleet.machines)
            advance("machines", len(fleet.machines))

    def _space(self, machines: Sequence[Cluster]) -> Space:
        """The plans on these machines; what sizes alone decide is made once for all accelerators."""
        prices, sizes = self._prices(machines), tuple(machine.size for machine in machines)
        if sizes in self._spaces:
            return self._spaces[sizes].on(machines, prices)
        self._spaces[sizes] = Space(
            self.model,
            machines,
            self.asked.options,
            self.asked.vary,
            prices,
            shifts_batch=self.asked.run.max_steps is None,
        )
        return self._spaces[sizes]

    def _ideal(self, space: Space) -> float:
        name = space.largest.accelerator.name
        if name not in self._ideals:
            self._ideals[name] = ideal_seconds(space)
        return self._ideals[name]

    def _promise(self, fleet: Fleet) -> float:
        """What the goal would be of the fleet's fastest imaginable plan: the best come first, and the rest are often
        passed over.
        """
        if self.goal.objective == "fewest":
            return -float(fleet.accelerator.memory.usable_bytes)
        space = self._space(fleet.machines)
        try:
            ideal = self._ideal(space) / space.worlds
        except TonnageError:
            return np.inf
        return float(np.min(Goal(objective=self.goal.objective).value(ideal, space.worlds, space.usd)))

    def take(self, machines: Sequence[Cluster]) -> None:
        """Search one kind of accelerator; what cannot be said of it is noted, and ends nothing."""
        for part in _parts(machines):
            before = self.found.tally.considered
            try:
                self._search(part)
            except TonnageError as error:
                self.found.refused.setdefault(part[0].accelerator.name, error)
                advance("plans", self._space(part).plans - (self.found.tally.considered - before))

    def _search(self, machines: Sequence[Cluster]) -> None:
        space, searched = self._space(machines), self.found
        goodput = goodputs(space, machines, self.asked.run)
        of_use = self._promising(space, goodput)
        searched.passed += len(machines) - len(of_use)
        if not len(of_use):
            tally = count_valid(space)
            advance("plans", tally.considered)
            searched.tally.add(tally)
            searched.beaten += tally.left
            return
        for earlier, *_ in searched.spaces[-1:]:  # what was walked is kept of one space alone
            earlier.known_layers.clear()
        usable = machines[0].accelerator.memory.usable_bytes - self.asked.reserve_bytes
        best_plans = search(
            space,
            usable,
            most=self.each,
            cutoff=self._cutoff(space, goodput),
            bounded=self.bounded,
            machines=of_use,
            tell=lambda plan: self._tell(self._entry(space, plan.machine, (plan,), goodput), usable),
        )
        searched.tally.add(best_plans.tally)
        searched.walked += best_plans.walked
        for sentence, count in best_plans.refused.items():
            searched.reasons[sentence] = searched.reasons.get(sentence, 0) + count
        searched.unknown += best_plans.unknown
        searched.beaten += best_plans.beaten
        searched.machines += len(of_use)
        searched.spaces.append((space, usable, of_use))
        for at, plans in enumerate(best_plans.best):
            if plans:
                searched.entries.append(self._entry(space, at, plans, goodput))

    def _entry(self, space: Space, at: int, plans: tuple[Candidate, ...], goodput: np.ndarray) -> Entry:
        """One of the space's machines with plans of it, and their value."""
        usd = None if np.isnan(space.usd[at]) else float(space.usd[at])
        return self._valued(Entry(machine=space.machines[at], plans=plans, usd=usd, goodput=float(goodput[at])))

    def _tell(self, entry: Entry, usable: int) -> None:
        """Tell whoever follows the search of a plan that is better than all before it."""
        if not entry.value < self._told:
            return
        self._told = entry.value
        plan, usd_per_token = entry.plans[0], entry.usd_per_token
        find(
            lambda: FoundPlanDocument(
                on=entry.machine.name,
                accelerators=entry.machine.size,
                options={name: value for name, value in plan.options.items() if value is not None},
                needed_bytes=plan.needed,
                usable_bytes=usable,
                step_seconds=plan.seconds,
                tokens_per_second=plan.tokens / plan.seconds,
                usd_per_million_tokens=None if usd_per_token is None else usd_per_token * 1e6,
            )
        )

    def _valued(self, entry: Entry) -> Entry:
        seconds, usd = np.array([entry.run_seconds_per_token]), np.array([np.nan if entry.usd is None else entry.usd])
        return replace(entry, value=float(self.goal.value(seconds, np.array([entry.machine.size]), usd)[0]))

    def _promising(self, space: Space, goodput: np.ndarray) -> np.ndarray:
        """The numbers of the machines whose fastest imaginable plan would be among the best."""
        best = self._kth([entry.value for entry in self.found.entries])
        if self.whole_front or not self.bounded or not (np.isfinite(best) or self.strict):
            return np.arange(len(space.machines))
        limits = self._limits(best, space, goodput)
        return np.flatnonzero((self._ideal(space) / space.worlds <= limits) & (limits > 0))

    def _limits(self, best: float, space: Space, goodput: np.ndarray) -> np.ndarray:
        """Seconds of a token, of steps alone, beyond which a plan is of no use: worse than `best`, or `strict`ly too
        late or too dear.
        """
        limits = self.goal.limits(best, space.worlds, space.usd)
        if self.strict:
            limits = np.minimum(limits, self.goal.latest(space.worlds, space.usd))
        return np.where(goodput > 0, limits * goodput, 0.0 if self.strict else limits)

    def _prices(self, machines: Sequence[Cluster]) -> np.ndarray:
        """USD of an accelerator that trains and hour, spare nodes among it; NaN where no price is known."""
        rents = [self.rent(machine) for machine in machines]
        paid = [1 + spare_accelerators(self.asked.run, machine) / machine.size for machine in machines]
        return np.array(
            [
                np.nan if price is None else price / machine.size * more
                for price, machine, more in zip(rents, machines, paid, strict=True)
            ]
        )

    def _kth(self, values: Sequence[float]) -> float:
        """The value that a machine must reach to be shown."""
        ordered = np.sort(values)
        return float(ordered[self.top - 1]) if len(ordered) >= self.top else np.inf

    def _cutoff(self, space: Space, goodput: np.ndarray) -> Cutoff | None:
        """The limit beyond which a plan is not among the best; None where every machine's best plan is asked for."""
        if self.whole_front:
            return None
        earlier = [entry.value for entry in self.found.entries]
        part = np.where(
            goodput > 0, goodput, np.nan
        )  # of a machine that fails sooner than it saves nothing is ever done

        def limits(best: np.ndarray) -> np.ndarray:
            done = np.where(np.isnan(part), np.inf, best / part)
            return self._limits(self._kth([*earlier, *self.goal.value(done, space.worlds, space.usd)]), space, goodput)

        return limits

    def _refine(self, fleets: Sequence[Fleet]) -> None:
        """Whole nodes between the smallest machine of a fleet that does and the next smaller one that does not."""
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
                expect("plans", sum(self._space(part).plans for part in _parts(more)))
                self.take(more)


def _parts(machines: Sequence[Cluster]) -> list[Sequence[Cluster]]:
    """Machines that are searched together. Where a node is used in part its links and its kernels are those of the
    whole node, but one accelerator has defaults of its own.
    """
    parts = (machines[:1], machines[1:]) if machines and machines[0].size == 1 else (machines,)
    return [part for part in parts if part]


def _order(entry: Entry) -> tuple[float, float, int, str]:
    """The goal's value; then speed; then fewer accelerators; then the name."""
    return entry.value, entry.run_seconds_per_token, entry.machine.size, entry.machine.name


def ideal_seconds(space: Space) -> float:
    """Accelerator-seconds of a token of the space's fastest imaginable plan; 0 where nobody knows."""
    kinds = {
        (choice["runtime"], choice.get("precision"), choice.get("liger")): choice
        for choice in space.choices
        if choice["recompute"] == "none"
    }
    seconds = [_choice_seconds(space, choice, s) for choice in kinds.values() for s in space.sequences]
    return min(seconds, default=0.0) if kinds and all(seconds) else 0.0


def plan_alone(space: Space, choice: Mapping[str, Any], s: int) -> tuple[Cluster, TrainingPlan]:
    """One accelerator, and the plan of a choice of names on it, as if it fitted. TonnageError where it cannot be."""
    return space.alone, space.ask_alone(choice, s)[0]


def _choice_seconds(space: Space, choice: Mapping[str, Any], s: int) -> float:
    try:
        alone, plan = plan_alone(space, choice, s)
        timing = Timing(space.model, plan, alone, of_update=space.of_updates)
    except TonnageError:
        return 0.0
    if plan.tuning.method != "full":
        return 0.0
    kernels = timing.walk.kernels
    share = max(*kernels.shares.matrix.values(), kernels.shares.attention, kernels.shares.flash2 or 0)
    share = share * max(1.0, kernels.machine)
    names = [kernels.wide, *([kernels.narrow] if kernels.narrow in kernels.chip.dense_flops else [])]
    best = share * max(kernels.chip.peak(name) for name in names)
    flops = sum(
        float(spent.flops)
        for passes in timing.walk.stages
        for (_, kind), spent in passes.kernels.items()
        if kind in ("product", "experts", "attention")
    )
    return float(flops / best * timing.walk.framework / (s * plan.micro_batch_size))


NO_TIME = Term.by(
    "step", 0.0, "seconds", basis="analytic", source="", version="1", procedure="shorter than any checkpoint interval"
)


def goodputs(space: Space, machines: Sequence[Cluster], run: RunOptions) -> np.ndarray:
    """The goodput of each machine; 1 where no run is asked for, 0 where it would fail sooner than it saves its work.

    Steps are taken as shorter than the time between checkpoints: longer ones have less, which the whole answer of a
    plan counts.
    """
    if not run.asked:
        return np.ones(len(machines))
    try:
        _, plan = plan_alone(space, space.choices[0], space.sequences[0])
    except TonnageError:  # the walk says so of each group
        return np.ones(len(machines))
    saved = saved_bytes(space.model, plan)
    shares = np.array(
        [
            reliability(NO_TIME, replace(plan, data_parallel_size=machine.size), run, saved, machine).goodput.value
            for machine in machines
        ]
    )
    return np.where(shares < LEAST_GOODPUT, 0.0, shares)
