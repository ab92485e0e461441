"""tonnage plan --train: the best plans of one machine, or the best machines, each with its best plan; every one estimated again by itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.errors import InvalidInput
from tonnage.estimate import answers
from tonnage.estimate._checks import expert_counts
from tonnage.estimate._moves import ordered
from tonnage.estimate._question import Question
from tonnage.estimate._timed import today
from tonnage.estimate.bill import BillOptions
from tonnage.estimate.plans import training_plan
from tonnage.estimate.run_options import RunOptions, Wanted, wanted
from tonnage.estimate.training_options import TrainingOptions
from tonnage.search.pareto import front
from tonnage.search.training.best import Candidate
from tonnage.search.training.fleet import Entry, Searched, Searcher
from tonnage.search.training.machines import fleets
from tonnage.search.training.objective import Goal, Objective, objective_named
from tonnage.search.training.options import SearchOptions, Vary
from tonnage.search.training.search import nearest
from tonnage.spec import Cluster, TrainingPlan

# Sizes whose default is one.
ONES = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "virtual_pipeline_size",
    "context_parallel_size",
    "expert_parallel_size",
)
NO_OPTIONS, NO_RUN, NO_BILL, NO_SEARCH = TrainingOptions(), RunOptions(), BillOptions(), SearchOptions()


class Planned(Struct, frozen=True, kw_only=True, eq=False):
    """A plan and its whole answer, by the same path as `train`. `options`: what the search chose, or was given; `of_run`: what was said about
    the run and its money, but for limits; `order`: what plans are sorted by."""

    machine: Cluster
    options: dict[str, Any]
    plan: TrainingPlan
    order: tuple[Any, ...]
    of_run: dict[str, Any]
    answer: answers.Answer
    usd_per_hour: float | None

    @property
    def seconds_per_token(self) -> float:
        assert self.answer.step_time is not None  # the search walked it
        return float(self.answer.step_time.value / self.plan.tokens_per_step)

    @property
    def usd_per_token(self) -> float | None:
        return (
            None if self.usd_per_hour is None else self.seconds_per_token * self.machine.size * self.usd_per_hour / 3600
        )


class Plans(Struct, frozen=True, kw_only=True, eq=False):
    """What a search found: `plans`, the best first; `front`: machines that no other beats; `nearest`: where nothing does, what comes nearest;
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
        made = self.searched
        if self.plans:
            return 0
        if self.why == "memory" and self.nearest and self.nearest.answer.tight:
            return 2
        nothing_known = not made.walked and made.unknown and made.tally.left + made.unknown > 0 and self.nearest is None
        return 4 if self.why == "price" or nothing_known or not made.tally.considered else 3


def plan_training(
    model: Model, on: Sequence[str] = (), options: TrainingOptions = NO_OPTIONS, run: RunOptions = NO_RUN, money: BillOptions = NO_BILL,
    asked: SearchOptions = NO_SEARCH, vary: Vary | None = None, *, reserve_bytes: int = 0,
) -> Plans:  # fmt: skip
    """The best plans on the machines that `on` names, or on all of the catalogue's."""
    found = fleets(on, asked.max_accelerators)
    compares = sum(len(fleet.machines) for fleet in found) > 1
    if asked.pareto and not compares:
        raise InvalidInput(
            f"pareto is a front of machines: name several, or one without a number. Got {on[0]!r} alone."
        )
    want = _wanted(run)
    goal = _goal(asked, want, compares)
    make = lambda goal: Searcher(  # noqa: E731
        model, options, run, money, goal, vary or {}, reserve=reserve_bytes, top=asked.shown, each=1 if compares else asked.shown, bounded=not asked.exhaustive,
        whole_front=bool(asked.pareto),
    )  # fmt: skip
    searcher = make(goal)
    made = searcher.go(found)
    if asked.goal is None and compares and all(entry.usd is None for entry in made.entries):
        goal = replace(goal, objective="fewest")
        made = make(goal).go(found)
    if not made.entries and made.refused and not made.tally.considered:
        raise next(iter(made.refused.values()))
    finish = _Finish(model, options, run, money, reserve_bytes, goal)
    plans = finish.best(made, asked.shown, compares)
    near, why = (None, "") if plans else finish.miss(made, want)
    unpriced = tuple(made.unpriced) if goal.objective == "cheapest" else ()
    return Plans(
        model=model, objective=goal.objective, plans=tuple(plans), front=tuple(_front(made.entries)) if asked.pareto else (), nearest=near, why=why,
        searched=made, unpriced=unpriced, compares=compares,
    )  # fmt: skip


def _wanted(run: RunOptions) -> Wanted | None:
    if run.stray:
        raise InvalidInput(
            f"{run.stray} is of a whole run, which needs a length: give tokens, epochs with dataset_tokens, or max_steps."
        )
    if not run.asked:
        return None
    if all(getattr(run, name) is None for name in ("tokens", "epochs", "max_steps")):
        said = "budget" if run.budget is not None else "budget_accelerator_hours"
        raise InvalidInput(
            f"{said} is a limit of a run of a length: give tokens, epochs or max_steps too. What a budget buys on one machine, `tonnage train` says."
        )
    return wanted(run, run.price_per_accelerator_hour or 1.0, today())


def _goal(asked: SearchOptions, want: Wanted | None, compares: bool) -> Goal:
    name = objective_named(asked.goal) if asked.goal else "cheapest" if compares else "fastest"
    tokens = _tokens(want)
    slowest = want.deadline / tokens if want and want.deadline and tokens else np.inf
    dearest = want.budget / tokens if want and want.budget and tokens else np.inf
    return Goal(objective=name, slowest=slowest, dearest=dearest)


def _tokens(want: Wanted | None) -> float | None:
    """Tokens of the run, where they are said without a batch."""
    if want is None:
        return None
    if want.epochs is not None:
        return want.epochs * (want.dataset_tokens or 0)
    return want.tokens


class _Finish:
    """From candidates to answers."""

    def __init__(
        self, model: Model, options: TrainingOptions, run: RunOptions, money: BillOptions, reserve: int, goal: Goal
    ):
        self.model, self.options, self.money, self.reserve, self.goal = model, options, money, reserve, goal
        # the search keeps to the limits itself: an answer would look for other numbers of accelerators
        limited = run.tokens is not None or run.epochs is not None
        self.whole = replace(run, deadline=None, budget=None) if limited else run
        self.of_run = {
            name: value
            for form in (self.whole, money)
            for name in form.__struct_fields__
            if (value := getattr(form, name)) is not None
        }

    def best(self, made: Searched, top: int, compares: bool) -> list[Planned]:
        """The first so many that keep every limit when failures and checkpoints are counted too."""
        pairs = (
            [(entry, entry.plans[0]) for entry in made.entries]
            if compares
            else [(entry, plan) for entry in made.entries for plan in entry.plans]
        )
        found: list[Planned] = []
        for entry, plan in pairs:
            if len(found) == top:
                break
            if np.isfinite(entry.value):
                one = self.answer(entry, plan)
                if self._keeps(one):
                    found.append(one)
        return found

    def answer(self, entry: Entry, plan: Candidate) -> Planned:
        """The whole answer of a plan, as `train` gives it."""
        options = replace(self.options, **plan.options)
        made = answers.train(
            self.model, entry.machine, options, self.whole, self.money, reserve_bytes=self.reserve, advise=False
        )
        chosen = training_plan(self.model, entry.machine, options, Question())
        said = {name: value for name in options.__struct_fields__ if (value := getattr(options, name)) is not None}
        return Planned(
            machine=entry.machine,
            options=_needed(said, chosen, bool(expert_counts(self.model))),
            plan=chosen,
            order=plan.order,
            of_run=self.of_run,
            answer=made,
            usd_per_hour=entry.usd,
        )

    def _keeps(self, one: Planned) -> bool:
        """Whether the run with its failures and checkpoints keeps to deadline and budget."""
        run, billed = one.answer.run, one.answer.bill
        if "tokens" not in run:
            return True
        tokens = run["tokens"].value * (1 + 1e-9)
        cost = billed.cost.value if billed and billed.cost else 0.0
        return bool(run["seconds"].value <= self.goal.slowest * tokens and cost <= self.goal.dearest * tokens)

    def miss(self, made: Searched, want: Wanted | None) -> tuple[Planned | None, str]:
        """What comes nearest, and what it breaks."""
        if made.entries:
            return self._late(made)
        close = [(plan.high / usable, space.machines[at], plan)
                 for space, usable in made.spaces for at, plan in nearest(space, range(len(space.machines))).items()]  # fmt: skip
        if not close:
            removed = [each for each in made.tally if each.plans]
            return None, removed[-1].constraint if removed else str(next(iter(made.refused.values()), ""))
        _, machine, plan = min(close, key=lambda each: (each[0], each[1].size))
        entry = Entry(machine=machine, plans=(plan,), usd=None, value=np.inf)
        return self.answer(entry, plan), "memory"

    def _late(self, made: Searched) -> tuple[Planned, str]:
        """All that fit miss a limit: the fastest if a deadline alone cannot be made, else the cheapest."""
        fastest = min(made.entries, key=lambda entry: entry.seconds_per_token)
        priced = [entry for entry in made.entries if entry.usd_per_token is not None]
        cheapest = min(priced, key=lambda entry: entry.usd_per_token or np.inf, default=None)
        late = fastest.seconds_per_token > self.goal.slowest
        dear = cheapest is not None and (cheapest.usd_per_token or 0) > self.goal.dearest
        if late:
            return self.answer(fastest, fastest.plans[0]), "deadline and budget, each by itself" if dear else "deadline"
        if cheapest is None:
            return self.answer(fastest, fastest.plans[0]), "price"
        if dear:
            return self.answer(cheapest, cheapest.plans[0]), "budget"
        timely = [entry for entry in priced if entry.seconds_per_token <= self.goal.slowest] or priced
        least = min(timely, key=lambda entry: entry.usd_per_token or np.inf)
        return self.answer(least, least.plans[0]), "deadline and budget together" if np.isfinite(
            self.goal.dearest
        ) else "deadline"


def _needed(said: dict[str, Any], plan: TrainingPlan, has_experts: bool) -> dict[str, Any]:
    """The options of a plan in the order of the command line, without sizes that are the default."""
    usual = plan.tensor_parallel_size if has_experts and plan.expert_parallel_size == 1 else 1
    defaults = dict.fromkeys(ONES, 1) | {"expert_tensor_parallel_size": usual}
    return {name: value for name, value in ordered(said, TrainingOptions).items() if value != defaults.get(name)}


def _front(entries: Sequence[Entry]) -> list[Entry]:
    """Machines that no other beats in time, money and number of accelerators; without a price in the other two."""
    if not entries:
        return []
    priced = all(entry.usd_per_token is not None for entry in entries)
    rows = [
        [entry.seconds_per_token, float(entry.machine.size), *([entry.usd_per_token or 0.0] if priced else [])]
        for entry in entries
    ]
    kept = front(np.array(rows))
    return sorted(
        (entry for entry, keep in zip(entries, kept, strict=True) if keep), key=lambda entry: entry.seconds_per_token
    )
