"""Where nothing holds: what each limit costs. A limit is left out, and the search asked again; where that finds a
plan, this limit is the cause.
"""

from collections.abc import Iterator
from math import ceil, floor, log10

from msgspec import Struct
from msgspec.structs import replace

from tonnage.kernel.message import Message
from tonnage.kernel.units import counted, human
from tonnage.search.serving.best import NEAR, Plan
from tonnage.search.serving.limits import NAMES
from tonnage.search.serving.machines import opened
from tonnage.search.serving.space import Space
from tonnage.search.serving.walk import Miss, Search

MAX_ACCELERATORS = 256  # accelerators, where their number is left open


class Nearest(Struct, frozen=True, kw_only=True, eq=False):
    """The plan that is found `without` an option; None where there is none."""

    without: str
    text: str
    plan: Plan | None


def nearest(search: Search) -> tuple[Nearest, ...]:
    """One for each limit whose leaving out is enough, else for all of them together; on the machines that were
    compared.
    """
    compared = tuple(machine for machine in search.space.machines if machine.accelerator.name not in search.unpriced)
    space = replace(search.space, machines=compared)
    rate = _largest_rate(space)
    nearest_plans = [near for near in _relaxed_plans(space, search.objective, rate) if near.plan is not None]
    if rate is not None:
        nearest_plans.insert(0, Nearest(without="request_rate", text=_describe_rate(space, rate), plan=rate))
    return tuple(nearest_plans or _together(space))


def _relaxed_plans(space: Space, objective: str, rate: Plan | None) -> Iterator[Nearest]:
    for name, without, smallest in _relaxed(space, objective):
        if rate is not None and name in ("max_accelerators", "on") and _accelerators(space, rate) > MAX_ACCELERATORS:
            continue  # so many replicas are found by dividing
        plan = _best(without, smallest)
        yield Nearest(without=name, text=_describe_plan(name, space, plan) if plan else "", plan=plan)


def _relaxed(space: Space, objective: str) -> Iterator[tuple[str, Space, str]]:
    """(the option, the space without it, what is then made small)."""
    goal = space.goal
    if goal.budget is not None:
        yield "budget", replace(space, goal=replace(goal, budget=None)), "cost"
    for name in NAMES:
        if getattr(space, name) is not None:
            yield name, replace(space, **{name: None}), name
    smallest = "cost" if objective == "cost" else "accelerators"
    yield "max_accelerators", replace(space, goal=replace(goal, most=MAX_ACCELERATORS)), smallest
    if any(machine.fixed is not None for machine in space.machines):
        machines = tuple(opened(machine) for machine in space.machines)
        yield "on", replace(space, machines=machines), smallest
    if space.options.weights is not None:
        yield "weights", replace(space, options=replace(space.options, weights=None)), objective


def _together(space: Space) -> Iterator[Nearest]:
    """Both limits of time left out: the least that each can be, and the plan that is nearest to both, which can be
    asked for.
    """
    if space.ttft is None or space.tpot is None:
        return
    without = replace(space, ttft=None, tpot=None, near=(space.ttft, space.tpot))
    for name in (NEAR, *NAMES):
        plan = _best(without, name)
        if plan is None:
            return
        text = _describe_both(plan) if name == NEAR else _least(name, plan)
        yield Nearest(without="ttft and tpot", text=text, plan=plan)


def _describe_both(plan: Plan) -> str:
    return Message(
        "{--ttft} and {--tpot} bind together: no plan works without just one of them. "
        "Nearest to both is {at}: {--ttft} {rounded_up} {--tpot} {rounded_up2} finds it.",
        at=_place_text(plan),
        rounded_up=_rounded_up(plan.ttft),
        rounded_up2=_rounded_up(plan.tpot),
    )


def _least(name: str, plan: Plan) -> str:
    least = human(getattr(plan, name), "seconds")
    return Message(
        "without {--ttft} and {--tpot} the lowest {names} is {least}, with {at}.",
        names=NAMES[name],
        least=least,
        at=_place_text(plan),
    )


def _rounded_up(seconds: float) -> str:
    """The seconds as an option takes them: four digits, rounded up."""
    digits = max(3 - floor(log10(seconds * 1000)), 0)
    return f"{ceil(seconds * 1000 * 10**digits) / 10**digits:.{digits}f}ms"


# ---- the rate of requests ----


def _largest_rate(space: Space) -> Plan | None:
    """The plan that answers the most requests a second within all other limits, of those whose replicas do both, to
    a five-hundredth.
    """
    if space.load.request_rate is None:
        return None
    goal = replace(space.goal, vary=space.goal.vary - {"disaggregation"})
    return _best(replace(space, goal=goal, searches_rates=True), "goodput")


def _accelerators(space: Space, rate: Plan) -> int:
    """Of so many replicas as answer all, each as many requests as those of this plan; of whole machines where only
    these are had.
    """
    machine = rate.config.kind.machine
    number = ceil((space.load.request_rate or 0) / rate.each) * rate.config.sizes.ranks
    return ceil(number / machine.each) * machine.each if machine.whole else number


def _describe_rate(space: Space, rate: Plan) -> str:
    number = _accelerators(space, rate)
    most = floor(rate.requests * 1000) / 1000 if rate.requests >= 0.001 else rate.requests
    ranks = rate.config.sizes.ranks
    return Message(
        "{--request-rate} {request_rate:,.10g} is too high: at most {most:,.7g} requests a "
        "second are answered, by {at}, {each:,.4g} of each replica. {number} would do: {ranks}.",
        request_rate=space.load.request_rate,
        most=most,
        at=_place_text(rate),
        each=rate.each,
        number=counted(number, "accelerators"),
        ranks=counted(number // ranks, "such replicas"),
    )


def _best(space: Space, objective: str) -> Plan | None:
    goal = replace(space.goal, top=1, pareto=False)
    plans = Search(replace(space, goal=goal), objective, top=1).run().board.plans
    return plans[0] if plans else None


def _describe_plan(name: str, space: Space, plan: Plan) -> str:
    at = _place_text(plan)
    if name in NAMES:
        least = human(getattr(plan, name), "seconds")
        return Message(
            "no plan meets --{name} {value}: the lowest {names} is {least}, with {at}.",
            name=name,
            value=human(getattr(space, name), "seconds"),
            names=NAMES[name],
            least=least,
            at=at,
        )
    if name == "budget":
        return Message(
            "no plan meets {--budget}: the cheapest one costs {usd} an hour, {at}.",
            usd=human(plan.layout.usd, "USD"),
            at=at,
        )
    if name == "max_accelerators":
        return Message(
            "more accelerators are needed: {accelerators} hold it, {at}. {--max-accelerators} "
            "{accelerators2} finds it.",
            accelerators=counted(plan.accelerators, "accelerators"),
            at=at,
            accelerators2=plan.accelerators,
        )
    if name == "on":
        return Message("the machine is too small: {at} works.", at=at)
    return Message("--{name} is the limit: {at} works.", name=name, at=at)


def _place_text(plan: Plan) -> str:
    return Message(
        "{on} with {stored} weights", on=plan.config.kind.machine.on(plan.layout.cluster), stored=plan.config.stored
    )


def missed(miss: Miss | None) -> str:
    """The sentence on the plan that came nearest to fitting."""
    if miss is None:
        return ""
    kind = miss.config.kind
    need = Message(
        "{what} needs {needed_bytes} of {usable_bytes}"
        if miss.what == "everything"
        else "{what} need {needed_bytes} of {usable_bytes}",
        what=miss.what,
        needed_bytes=human(miss.needed_bytes, "bytes"),
        usable_bytes=human(miss.usable_bytes, "bytes"),
    )
    return Message(
        "nearest to fitting: {need} on {on}, {stored} weights.",
        need=need,
        on=kind.machine.on(miss.cluster),
        stored=miss.config.stored,
    )
