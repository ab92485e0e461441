"""tonnage plan --train for objectives that generate: how many accelerators train and how many generate, or all of them
both in turn; on each split the plans whose update is fastest, each estimated whole.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question, today
from tonnage.estimate.money.bill import rent
from tonnage.estimate.options.plans import rollout_length, training_plan
from tonnage.estimate.options.run_options import RunOptions, Wanted, wanted
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.post_training.rollout import Rollouts
from tonnage.estimate.post_training.step import PostTrainingStep
from tonnage.estimate.step.objective import OBJECTIVES, teacher_of
from tonnage.estimate.step.rollout_options import OWN_GENERATE, generates, usual_engine
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.units import HOUR
from tonnage.search.removed import Tally
from tonnage.search.training.best import Candidate
from tonnage.search.training.fleet import Entry, Searched, Searcher
from tonnage.search.training.machines import Fleet, fleets
from tonnage.search.training.objective import Goal
from tonnage.search.training.options import TrainingQuestion
from tonnage.search.training.plan import BUDGET, DEADLINE, HOURS, MEMORY, Finish, Planned, Plans, goal_of
from tonnage.spec import Cluster

MOST_MACHINES = 16  # a step with its rollouts is estimated by itself, in tens of milliseconds
EIGHTHS = (2, 4, 6)  # of the accelerators that generate alone; then those beside the best
UPDATES = 2  # plans of the fastest updates that are estimated whole, on each split
WIDER = (2, 4)  # ranks of an engine, of the fewest that hold the model


class Split(Struct, frozen=True):
    """`train`: the machine that trains; `apart`: accelerators that generate beside it, 0: it generates too."""

    train: Cluster
    apart: int


class Whole(Struct, frozen=True, eq=False):
    """A plan with its rollouts. `options`: all that was chosen; `seconds`: of a step."""

    split: Split
    options: TrainingOptions
    chosen: dict[str, Any]
    candidate: Candidate
    usd: float | None
    seconds: float

    @property
    def accelerators(self) -> int:
        return self.split.train.size + self.split.apart

    @property
    def order(self) -> tuple[float, int, int]:
        """What plans of one goal are sorted by after it: speed, then fewer accelerators, then one pool of them."""
        return self.seconds, self.accelerators, self.split.apart


def plan_post_training(model: Model, question: TrainingQuestion) -> Plans:
    """The best plans of an objective that is not sft, on each machine that is named."""
    if (length := rollout_length(model, question.options)) is not None and "sequence_length" not in question.vary:
        question = replace(question, options=replace(question.options, sequence_length=length))
    if "teacher" in OBJECTIVES[question.options.objective or "sft"].beside:
        teacher_of(model, question.options, Question())  # refused once, not plan by plan
    every_fleet = fleets(question.on, question.search.max_accelerators)
    machines = [machine for fleet in every_fleet for machine in fleet.machines]
    if len(machines) > MOST_MACHINES:
        raise InvalidInput(
            "a step of objective {objective} is estimated machine by machine: name at most {most} of them in {@on}. "
            "Got {count}.",
            objective=question.options.objective,
            most=MOST_MACHINES,
            count=len(machines),
        )
    compares = len(machines) > 1
    goal = goal_of(model, [Fleet(machines=(each,), is_open=False) for each in machines], question, compares)
    searched = Searched(tally=Tally())
    every = [whole for machine in machines for whole in _Machine(model, machine, question, searched).go()]
    searched.machines = len(machines)
    every.sort(key=lambda one: (_value(one, goal), *one.order))
    finish = Finish(model, question, goal)
    plans, late, refusal = _answered(finish, every, question, compares)
    near = plans[0] if plans else late
    if not plans and near is None and refusal is not None:
        raise refusal
    limits = {DEADLINE: goal.slowest, BUDGET: goal.dearest, HOURS: goal.longest}
    missed = [name for name, limit in limits.items() if np.isfinite(limit)]
    return Plans(
        model=model,
        objective=goal.objective,
        plans=tuple(plans),
        front=(),
        nearest=None if plans else late,
        why="" if plans else missed[0] if late and missed else MEMORY,
        searched=searched,
        unpriced=(),
        compares=compares,
    )


def _value(one: Whole, goal: Goal) -> float:
    """The goal's value of a plan: the least is the best."""
    if goal.objective == "fewest":
        return float(one.accelerators)
    if goal.objective == "cheapest":
        return one.seconds * one.accelerators * one.usd if one.usd is not None else np.inf
    return one.seconds


class _Machine:
    """One machine: its splits, each with the plan whose step is shortest. `rollouts`: of splits that generate apart,
    by their accelerators and what the question says of the engine, which no plan of training changes.
    """

    def __init__(self, model: Model, machine: Cluster, question: TrainingQuestion, searched: Searched):
        self.model, self.machine, self.asked, self.searched = model, machine, question, searched
        self.options = question.options
        self.generates = generates(self.options.objective or "sft")
        price = rent(question.money, question.run.price_per_accelerator_hour)(machine)
        self.usd = None if price is None else price / machine.size
        self._rollouts: dict[Any, Rollouts] = {}
        self._best: dict[int, Whole | None] = {}

    def go(self) -> list[Whole]:
        """The best plan of each split that was tried."""
        size, options = self.machine.size, self.options
        if options.rollout_accelerators is not None or not self.generates:
            self._take(options.rollout_accelerators or 0, self.machine)
        else:
            if not options.async_steps:
                self._take(0, self.machine)
            engine = options.rollout_engine or usual_engine(options.objective or "sft")
            if engine != OWN_GENERATE:  # which runs where the model trains
                for part in EIGHTHS:
                    self._take_apart(size * part / 8)
                best = min((one for one in self._best.values() if one), key=lambda one: one.order, default=None)
                if best is not None and best.split.apart:
                    for more in (-1, 1):
                        self._take_apart(best.split.apart + more * size / 8)
        return [one for one in self._best.values() if one]

    def _take_apart(self, accelerators: float) -> None:
        """About so many accelerators that generate alone: whole nodes of several."""
        machine, per_node = self.machine, self.machine.accelerators_per_node
        step = 1 if machine.num_nodes == 1 else per_node
        apart = max(round(accelerators / step), 1) * step
        left = machine.size - apart
        if left > 0:
            nodes, each = (1, left) if machine.num_nodes == 1 else (left // per_node, per_node)
            self._take(apart, replace(machine, num_nodes=nodes, accelerators_per_node=each))

    def _take(self, apart: int, train: Cluster) -> None:
        """Search the updates on the accelerators that train, and estimate the best whole."""
        if apart in self._best:
            return
        split = Split(train=train, apart=apart)
        options = replace(self.options, rollout_accelerators=apart or None)
        inner = replace(self.asked, on=(train.name,), options=options, run=RunOptions())
        found = Searcher(self.model, inner, Goal(objective="fastest"), plans_of_machine=UPDATES).go(
            [Fleet(machines=(train,), is_open=False)]
        )
        _add(self.searched, found)
        wholes = [
            whole
            for entry in found.entries
            for candidate in entry.plans
            for whole in self._estimated(split, options, candidate)
        ]
        best = min(wholes, key=lambda one: one.order, default=None)
        self._best[apart] = best and min([best, *self._wider(best)], key=lambda one: one.order)

    def _estimated(self, split: Split, options: TrainingOptions, candidate: Candidate) -> Iterator[Whole]:
        """A plan of an update with its rollouts, waiting for each other or, where they may, side by side."""
        waits = (options.async_steps,) if options.async_steps is not None or not split.apart else (0, 1)
        for late in waits:
            chosen = dict(candidate.options) | ({"async_steps": late} if late is not None and split.apart else {})
            asked = replace(options, **chosen)
            try:
                seconds = self._seconds(split, asked)
            except TonnageError:
                continue
            yield Whole(split=split, options=asked, chosen=chosen, candidate=candidate, usd=self.usd, seconds=seconds)

    def _wider(self, one: Whole) -> Iterator[Whole]:
        """The same plan with engines of more ranks, where nobody says how many."""
        if one.options.rollout_tensor_parallel_size is not None or not self.generates:
            return
        least = int(self._step(one.split, one.options).rollouts.served[0].tensor_parallel_size)
        for factor in WIDER:
            chosen = one.chosen | {"rollout_tensor_parallel_size": least * factor}
            asked = replace(one.options, rollout_tensor_parallel_size=least * factor)
            try:
                yield replace(one, options=asked, chosen=chosen, seconds=self._seconds(one.split, asked))
            except TonnageError:
                return

    def _seconds(self, split: Split, options: TrainingOptions) -> float:
        return self._step(split, options).seconds

    def _step(self, split: Split, options: TrainingOptions) -> PostTrainingStep:
        plan = training_plan(self.model, split.train, options, Question())
        step = PostTrainingStep(self.model, plan, split.train)
        if split.apart:
            key = split.apart, plan.rollout
            if key not in self._rollouts:
                self._rollouts[key] = step.rollouts
            step.rollouts = self._rollouts[key]
        return step


def _answered(
    finish: Finish, every: list[Whole], question: TrainingQuestion, compares: bool
) -> tuple[list[Planned], Planned | None, TonnageError | None]:
    """The first so many that fit and keep every limit, and the first that fits without keeping them."""
    wants = wanted(question.run, 1.0, today()) if question.run.asked else None
    plans: list[Planned] = []
    late, refusal, done = None, None, set()
    for one in every:
        if len(plans) == question.search.shown:
            break
        of_machine = one.split.train.accelerator.name, one.accelerators
        if compares and of_machine in done:
            continue
        entry = Entry(machine=one.split.train, plans=(one.candidate,), usd=one.usd)
        chosen = one.chosen | ({"rollout_accelerators": one.split.apart} if one.split.apart else {})
        try:
            planned = finish.answer(entry, replace(one.candidate, options=chosen))
        except TonnageError as error:
            refusal = error
            continue
        if planned.answer.fits is False:
            continue
        late = late or planned
        if _keeps(planned, one, wants):
            plans.append(planned)
            done.add(of_machine)
    return plans, late, refusal


def _keeps(planned: Planned, one: Whole, wants: Wanted | None) -> bool:
    """Whether the run keeps to its limits, with failures and checkpoints."""
    run = planned.answer.run
    if wants is None or run is None or not run.seconds:
        return True
    seconds = float(run.seconds.value)
    paid = seconds / HOUR * one.accelerators
    return (
        (wants.deadline is None or seconds <= wants.deadline)
        and (wants.budget is None or (one.usd is not None and paid * one.usd <= wants.budget))
        and (wants.hours is None or paid <= wants.hours)
    )


def _add(searched: Searched, found: Searched) -> None:
    """Count what one of several searches looked at."""
    searched.tally.add(found.tally)
    searched.walked += found.walked
    searched.beaten += found.beaten
    searched.unknown += found.unknown
    searched.refused.update(found.refused)
    searched.unpriced.update(found.unpriced)
    for reason, count in found.reasons.items():
        searched.reasons[reason] = searched.reasons.get(reason, 0) + count
