"""tonnage plan --train: the best plans of one machine, or the best machines, each with its best plan; every one
estimated again by itself.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.advice.moves import ordered
from tonnage.estimate.answer import answers
from tonnage.estimate.answer.training import today
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.lighter import lighter_kernels
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import wanted
from tonnage.estimate.plan.rule import expert_counts
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.time import check_timed
from tonnage.formulas.cost import rent_usd
from tonnage.formulas.run import accelerator_hours
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.message import Message, joined, option_name
from tonnage.search.pareto import front
from tonnage.search.training.best import Candidate
from tonnage.search.training.choices import runtimes_of
from tonnage.search.training.fleet import Entry, Searched, Searcher
from tonnage.search.training.hopeless import check_choices
from tonnage.search.training.machines import Fleet, fleets
from tonnage.search.training.objective import Goal, Objective, objective_named
from tonnage.search.training.options import TrainingQuestion
from tonnage.search.training.search import nearest
from tonnage.search.training.space import Space
from tonnage.spec import Cluster, TrainingPlan

# Sizes whose default is one.
ONES = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "virtual_pipeline_size",
    "context_parallel_size",
    "expert_parallel_size",
)
LENGTHS = ("tokens", "epochs", "max_steps")
LIMITS = ("deadline", "budget", "budget_accelerator_hours")
# What binds where nothing does.
MEMORY, PRICE, DEADLINE, BUDGET, HOURS = "memory", "price", "deadline", "budget", "budget of accelerator-hours"


class Planned(Struct, frozen=True, kw_only=True, eq=False):
    """A plan and its whole answer, by the same path as `train`. `entry`: its machine; `options`: what the search
    chose, or was given; `of_run`: what was said about the run and its money; `order`: what plans are
    sorted by.
    """

    entry: Entry
    options: dict[str, Any]
    plan: TrainingPlan
    order: tuple[Any, ...]
    of_run: dict[str, Any]
    answer: answers.Answer

    @property
    def machine(self) -> Cluster:
        return self.entry.machine

    @property
    def accelerators(self) -> int:
        """Those that train, and those that generate apart from them."""
        return self.machine.size + self.plan.rollout.rollout_accelerators

    @property
    def seconds_per_token(self) -> float:
        """Seconds of a token while steps run, without failures and checkpoints."""
        assert self.answer.step_time is not None  # the search walked it
        if self.plan.rollout.prompts_per_step and self.answer.run is not None:  # completions shorter than the longest
            return float(1 / self.answer.run.tokens_per_second.value)
        return float(self.answer.step_time.value / self.plan.tokens_per_step)

    @property
    def usd_per_token(self) -> float | None:
        """Dollars of a token while steps run, without failures and checkpoints."""
        if self.entry.usd is None:
            return None
        return float(rent_usd.evaluate(nodes=self.accelerators, tau=self.seconds_per_token, USD_hour=self.entry.usd))


class Plans(Struct, frozen=True, kw_only=True, eq=False):
    """What a search found: `plans`, the best first; `front`: machines that no other beats; `nearest`: where nothing
    does, what comes nearest;
    `why`: the constraint that binds."""

    model: Model
    objective: Objective
    plans: tuple[Planned, ...]
    front: tuple[Entry, ...]
    nearest: Planned | None
    why: str
    searched: Searched
    unpriced: tuple[str, ...]
    compares: bool

    @property
    def status(self) -> int:
        """0 found; 2 only inside the error band; 4 not enough is known; 3 nothing does."""
        searched = self.searched
        if self.plans:
            return 0
        if self.why == MEMORY and self.nearest and self.nearest.answer.tight:
            return 2
        nothing_known = self.nearest is None and not searched.walked and searched.unknown
        return 4 if self.why == PRICE or nothing_known or not searched.tally.considered else 3


def plan_training(model: Model, question: TrainingQuestion, *, explains: bool = True) -> Plans:
    """The best plans on the machines that are named, or on all of the catalogue's. `explains`: where there are none,
    look for what comes nearest.
    """
    candidates_on = fleets(question.on, question.search.max_accelerators)
    compares = sum(len(fleet.machines) for fleet in candidates_on) > 1
    if question.search.pareto and not compares:
        raise InvalidInput(
            "{@pareto} is a front of machines: name several, or one without a number. Got {on!r} alone.",
            on=question.on[0],
        )
    goal = goal_of(model, candidates_on, question, compares)
    Space(model, candidates_on[0].machines, question.options, question.vary).check_companions()
    check_choices(
        Space(model, part, question.options, question.vary) for part in _parts_of((candidates_on[0], candidates_on[-1]))
    )
    _check_timed(question, candidates_on)
    plans_of_machine = 1 if compares else question.search.shown
    searched = Searcher(model, question, goal, plans_of_machine=plans_of_machine).go(candidates_on)
    if question.search.goal is None and compares and all(entry.usd is None for entry in searched.entries):
        goal = replace(goal, objective="fewest")
        searched = Searcher(model, question, goal, plans_of_machine=plans_of_machine).go(candidates_on)
    if not searched.entries and searched.refused and not searched.tally.considered:
        raise next(iter(searched.refused.values()))
    finish = Finish(model, question, goal)
    plans = finish.best(searched, compares)
    near, why = (None, "") if plans or not explains else finish.miss(searched)
    if why == MEMORY and (lighter := with_lighter_losses(question, candidates_on)) is not None:
        lighter_plans = plan_training(model, lighter, explains=False)
        if lighter_plans.plans:
            return lighter_plans
    return Plans(
        model=model,
        objective=goal.objective,
        plans=tuple(plans),
        front=tuple(_front(searched.entries)) if question.search.pareto else (),
        nearest=near,
        why=why,
        searched=searched,
        unpriced=tuple(searched.unpriced) if goal.objective == "cheapest" else (),
        compares=compares,
    )


def _check_timed(question: TrainingQuestion, all_fleets: Sequence[Fleet]) -> None:
    """A search needs the time of a step: where none of what is asked about has one, it says so at once."""
    objectives = question.vary.get("objective", (question.options.objective or "sft",))
    parts = _parts_of(all_fleets)
    runtimes = {name for part in parts for name in runtimes_of(part, question.options, question.vary)}
    errors: list[MissingDatum] = []
    for objective, runtime in product(objectives, sorted(runtimes)):
        try:
            check_timed(objective, runtime)
        except MissingDatum as error:
            errors.append(error)
        else:
            return
    raise MissingDatum(
        "a search ranks plans by the time of a step: {why} `tonnage train` says whether a run fits, "
        "`tonnage max sequence` and `tonnage max micro-batch` the largest that does.",
        why=errors[0],
    )


def with_lighter_losses(question: TrainingQuestion, all_fleets: Sequence[Fleet]) -> TrainingQuestion | None:
    """The question that tries the losses that need less memory, where nobody says which; None where no runtime has
    one. Liger's kernels are tried at once (`choices_of`).
    """
    if question.options.loss is not None or "loss" in question.vary:
        return None
    runtimes = {name for part in _parts_of(all_fleets) for name in runtimes_of(part, question.options, question.vary)}
    of_each = [dict(lighter_kernels(name)).get("loss", ()) for name in sorted(runtimes)]
    losses = [loss for every in of_each for loss in every]
    own = [] if all(of_each) else [None]  # of a runtime that has one loss alone
    return replace(question, vary={**question.vary, "loss": tuple(dict.fromkeys([*own, *losses]))}) if losses else None


def _parts_of(all_fleets: Sequence[Fleet]) -> Iterator[Sequence[Cluster]]:
    """Machines that are searched together: one accelerator has runtimes of its own."""
    for fleet in all_fleets:
        yield from (part for part in (fleet.machines[:1], fleet.machines[1:]) if part)


def goal_of(model: Model, all_fleets: Sequence[Fleet], question: TrainingQuestion, compares: bool) -> Goal:
    """The goal, and by the token what the limits of a run leave."""
    named_goal, run = question.search.goal, question.run
    name = objective_named(named_goal) if named_goal else "cheapest" if compares else "fastest"
    if run.stray:
        raise InvalidInput(
            "{stray} is of a whole run, and nothing says how long it is: give {@tokens}, {@max_steps}, or {@epochs} "
            "with {@dataset_tokens}.",
            stray=option_name(run.stray),
        )
    if not run.asked:
        return Goal(objective=name)
    if all(getattr(run, length) is None for length in LENGTHS):
        limit = next(limit for limit in LIMITS if getattr(run, limit) is not None)
        raise InvalidInput(
            "{limit} is a limit of a run of a length: give {@tokens}, {@epochs} or {@max_steps} too. "
            "What a budget buys on one machine, `tonnage train` says.",
            limit=option_name(limit),
        )
    want = wanted(run, run.price_per_accelerator_hour or 1.0, today())
    tokens = want.tokens if want.epochs is None else want.epochs * (want.dataset_tokens or 0)
    if want.steps is not None:
        tokens = want.steps * _step_tokens(
            Space(model, all_fleets[0].machines, question.options, question.vary, shifts_batch=False)
        )
    assert tokens  # one of the three lengths is given
    limits = {"slowest": want.deadline, "dearest": want.budget, "longest": want.hours}
    return Goal(objective=name, **{name: value / tokens for name, value in limits.items() if value is not None})


def _step_tokens(space: Space) -> int:
    """Tokens of a step, where all plans have the same."""
    every = {s * batch for s in space.sequences for batch in space.batches[s]}
    if len(every) != 1 or 0 in every:
        raise InvalidInput(
            Message(
                "{@max_steps} compares plans only at one length of sequences and one "
                "{@global_batch_size}: give these, or tokens."
            )
        )
    return every.pop()


class Finish:
    """Turns the candidates of a search into answers."""

    def __init__(self, model: Model, question: TrainingQuestion, goal: Goal):
        self.model, self.asked, self.goal = model, question, goal
        # the search keeps to the limits itself: an answer would look for other numbers of accelerators
        self.run = replace(question.run, **dict.fromkeys(LIMITS))
        forms = (question.run, question.money)
        self.of_run = {
            name: value
            for form in forms
            for name in form.__struct_fields__
            if (value := getattr(form, name)) is not None
        }
        if question.reserve_bytes:
            self.of_run["reserve"] = f"{question.reserve_bytes}B"

    def best(self, searched: Searched, compares: bool) -> list[Planned]:
        """The first so many that keep every limit when failures and checkpoints are counted too."""
        pairs = (
            [(entry, entry.plans[0]) for entry in searched.entries]
            if compares
            else [(entry, plan) for entry in searched.entries for plan in entry.plans]
        )
        planned: list[Planned] = []
        for entry, plan in pairs:
            if len(planned) == self.asked.search.shown:
                break
            if np.isfinite(entry.value):
                one = self.answer(entry, plan)
                if self._keeps(one):
                    planned.append(one)
        return planned

    def answer(self, entry: Entry, plan: Candidate) -> Planned:
        """The whole answer of a plan, as `train` gives it."""
        options, machine = replace(self.asked.options, **plan.options), entry.machine
        estimate = answers.train(
            self.model,
            machine,
            options,
            self.run,
            self.asked.money,
            reserve_bytes=self.asked.reserve_bytes,
            advise=False,
        )
        chosen = training_plan(self.model, machine, options, Question())
        options_said = {
            name: value for name in options.__struct_fields__ if (value := getattr(options, name)) is not None
        }
        needed = _needed(options_said, chosen, bool(expert_counts(self.model)))
        return Planned(entry=entry, options=needed, plan=chosen, order=plan.order, of_run=self.of_run, answer=estimate)

    def _keeps(self, one: Planned) -> bool:
        """Whether the run keeps to its limits by its own answer: a step longer than the time between checkpoints
        leaves less than the search took.
        """
        run = one.answer.run
        if not run or not run.tokens or not run.seconds:
            return True
        usd = np.array([np.nan if one.entry.usd is None else one.entry.usd])
        latest = self.goal.latest(np.array([one.machine.size]), usd)[0]
        return bool(run.seconds.value <= latest * run.tokens.value * (1 + 1e-6))

    def miss(self, searched: Searched) -> tuple[Planned | None, str]:
        """The plan that comes nearest, and the constraint that it breaks."""
        if searched.entries:
            return self._late(searched)
        close = [
            (plan.high / usable, space.machines[at], plan)
            for space, usable, machines in searched.spaces
            for at, plan in nearest(space, machines.tolist()).items()
        ]
        if not close:
            removed = [*(removal.constraint for removal in searched.tally if removal.plans), *searched.reasons]
            return None, removed[-1] if removed else str(next(iter(searched.refused.values()), ""))
        _, machine, plan = min(close, key=lambda candidate: (candidate[0], candidate[1].size))
        return self.answer(Entry(machine=machine, plans=(plan,)), plan), MEMORY

    def _late(self, searched: Searched) -> tuple[Planned, str]:
        """All that fit miss a limit: which each misses by itself, and the plan that misses it least; where each
        could be kept alone, the cheapest of those in time.
        """
        goal, infinite = self.goal, np.inf
        of = {
            DEADLINE: (goal.slowest, lambda entry: entry.run_seconds_per_token),
            BUDGET: (goal.dearest, lambda entry: infinite if entry.usd_per_token is None else entry.usd_per_token),
            HOURS: (
                goal.longest,
                lambda entry: accelerator_hours.evaluate(n=entry.machine.size, tau=entry.run_seconds_per_token),
            ),
        }
        best = {name: min(searched.entries, key=figure) for name, (_, figure) in of.items()}
        if np.isfinite(goal.dearest) and best[BUDGET].usd is None:
            return self._first(best[DEADLINE]), PRICE
        missed = [name for name, (limit, figure) in of.items() if figure(best[name]) > limit]
        if missed:
            return self._first(best[missed[0]]), missed[0] if len(missed) == 1 else Message(
                "{missed}, each by itself", missed=joined(" and ", missed)
            )
        if not goal.is_limited:
            return self._first(best[DEADLINE]), PRICE  # the cheapest was asked for
        limits_set = [name for name, (limit, _) in of.items() if np.isfinite(limit)]
        timely = [entry for entry in searched.entries if entry.run_seconds_per_token <= goal.slowest]
        return self._first(min(timely, key=of[limits_set[-1]][1])), Message(
            "{asked} together", asked=joined(" and ", limits_set)
        ) if len(limits_set) > 1 else limits_set[0]

    def _first(self, entry: Entry) -> Planned:
        return self.answer(entry, entry.plans[0])


def _needed(options: dict[str, Any], plan: TrainingPlan, has_experts: bool) -> dict[str, Any]:
    """The options of a plan in the order of the command line, without sizes that are the default."""
    usual = plan.tensor_parallel_size if has_experts and plan.expert_parallel_size == 1 else 1
    defaults = dict.fromkeys(ONES, 1) | {"expert_tensor_parallel_size": usual}
    return {name: value for name, value in ordered(options, TrainingOptions).items() if value != defaults.get(name)}


def _front(entries: Sequence[Entry]) -> list[Entry]:
    """Machines that no other beats in time, money and number of accelerators; without a price in the other two."""
    if not entries:
        return []
    priced = all(entry.usd_per_token is not None for entry in entries)
    rows = [
        [entry.run_seconds_per_token, float(entry.machine.size), *([entry.usd_per_token or 0.0] if priced else [])]
        for entry in entries
    ]
    on_front = front(np.array(rows))
    return sorted(
        (entry for entry, keep in zip(entries, on_front, strict=True) if keep),
        key=lambda entry: entry.run_seconds_per_token,
    )
