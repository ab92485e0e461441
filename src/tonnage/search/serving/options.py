"""What is said of a search for a serving plan: what is best, what is varied, and how much may be spent."""

import re

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import parse_usd
from tonnage.question.subjects.plan import ServingPlanOptions

# What is best, in words; `lower` is what the search makes small.
OBJECTIVES = {
    "cost": "fewest USD an hour",
    "accelerators": "fewest accelerators",
    "tpot": "lowest TPOT",
    "ttft": "lowest TTFT",
    "end-to-end": "lowest end-to-end latency",
    "goodput": "most requests per second",
    "token-cost": "fewest USD for a million tokens",
}
OF_USERS = ("goodput", "token-cost")  # these search the number of users too, where nobody says it
OF_MONEY = ("cost", "token-cost")
VARIED = ("engine", "kv-cache", "batch", "disaggregation")
HOURS = {"h": 1, "hour": 1, "d": 24, "day": 24, "week": 168, "month": 730, "year": 8760}
MAX_ACCELERATORS_SEARCHED, MOST_TOP = 64, 100
TOP = 5


class Goal(Struct, frozen=True, kw_only=True):
    """The options read. `budget`: USD an hour; `most`: accelerators, None where nobody says it."""

    objective: str | None
    vary: frozenset[str]
    most: int | None
    budget: float | None
    top: int
    pareto: bool


def goal(options: ServingPlanOptions) -> Goal:
    """The goal that these options name, checked."""
    if options.goal is not None and options.goal not in OBJECTIVES:
        raise unknown("goal", options.goal, OBJECTIVES)
    top = TOP if options.top is None else options.top
    if not 1 <= top <= MOST_TOP:
        raise InvalidInput("{@top} must be from 1 to {most_top}. Got {top}.", most_top=MOST_TOP, top=top)
    if options.max_accelerators is not None and not 1 <= options.max_accelerators <= 100_000:
        raise InvalidInput(
            "{@max_accelerators} must be from 1 to 100,000. Got {max_accelerators:,}.",
            max_accelerators=options.max_accelerators,
        )
    return Goal(
        objective=options.goal,
        vary=_varied(options.vary),
        most=options.max_accelerators,
        budget=budget_per_hour(options.budget),
        top=top,
        pareto=bool(options.pareto),
    )


def _varied(text: str | None) -> frozenset[str]:
    names = [name.strip().replace("_", "-") for name in (text or "").split(",") if name.strip()]
    if "all" in names:
        return frozenset(VARIED)
    for name in names:
        if name not in VARIED:
            raise unknown("part of a plan to vary", name, (*VARIED, "all"))
    return frozenset(names)


def budget_per_hour(budget: float | str | None) -> float | None:
    """USD an hour of "20", "20/h", "500/day" or "15k/month"; a month has 730 hours.

    >>> budget_per_hour("7300/month")
    10.0
    """
    if budget is None:
        return None
    amount, slash, period = str(budget).partition("/")
    period = re.sub(r"^(per\s*)?1?\s*|s$", "", period.strip().lower())
    if slash and period not in HOURS:
        raise InvalidInput("{@budget} is written like 20/h, 500/day or 15k/month. Got {said}.", said=shown(budget))
    usd = parse_usd(amount, "budget")
    if not usd > 0:
        raise InvalidInput("{@budget} must be more than 0 USD. Got {said}.", said=shown(budget))
    return usd / HOURS[period] if slash else usd
