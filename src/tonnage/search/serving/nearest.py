"""Where nothing holds: what each limit costs. A limit is left out, and the search asked again; where that finds a plan, the limit is what binds."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from tonnage.search.serving.best import Plan
from tonnage.search.serving.limits import NAMES
from tonnage.search.serving.machines import opened
from tonnage.search.serving.space import Space
from tonnage.search.serving.walk import Miss, Search
from tonnage.units import counted, human

MANY = 256  # accelerators, where their number is left open


class Nearest(Struct, frozen=True, kw_only=True, eq=False):
    """What is found `without` an option, or none where nothing is."""

    without: str
    text: str
    plan: Plan | None


def nearest(search: Search) -> tuple[Nearest, ...]:
    """One for each limit whose leaving out is enough, else for all of them together; on the machines that were compared."""
    compared = tuple(each for each in search.space.machines if each.accelerator.name not in search.unpriced)
    space = replace(search.space, machines=compared)
    found = [each for each in _each(space, search.objective) if each.plan is not None]
    return tuple(found or _together(space))


def _each(space: Space, objective: str) -> Iterator[Nearest]:
    for name, without, smallest in _relaxed(space, objective):
        plan = _best(without, smallest)
        yield Nearest(without=name, text=_said(name, space, plan) if plan else "", plan=plan)


def _relaxed(space: Space, objective: str) -> Iterator[tuple[str, Space, str]]:
    """(the option, the space without it, what is then made small)."""
    goal = space.goal
    if goal.budget is not None:
        yield "budget", replace(space, goal=replace(goal, budget=None)), "cost"
    for name in NAMES:
        if getattr(space, name) is not None:
            yield name, replace(space, **{name: None}), name
    smallest = "cost" if objective == "cost" else "accelerators"
    yield "max_accelerators", replace(space, goal=replace(goal, most=MANY)), smallest
    if any(machine.fixed is not None for machine in space.machines):
        machines = tuple(opened(machine) for machine in space.machines)
        yield "on", replace(space, machines=machines), smallest
    if space.options.weights is not None:
        yield "weights", replace(space, options=replace(space.options, weights=None)), objective


def _together(space: Space) -> Iterator[Nearest]:
    """Both limits of time left out: the least that each can be."""
    if space.ttft is None or space.tpot is None:
        return
    for name in NAMES:
        plan = _best(replace(space, ttft=None, tpot=None), name)
        if plan is not None:
            yield Nearest(without="ttft and tpot", text=_said(name, space, plan), plan=plan)


def _best(space: Space, objective: str) -> Plan | None:
    goal = replace(space.goal, top=1, pareto=False)
    plans = Search(replace(space, goal=goal), objective, top=1).run().board.plans
    return plans[0] if plans else None


def _said(name: str, space: Space, plan: Plan) -> str:
    on = plan.config.kind.machine.on(plan.layout.cluster)
    at = f"{on} with {plan.config.stored} weights"
    if name in NAMES:
        least = human(getattr(plan, name), "seconds")
        return f"--{name} {human(getattr(space, name), 'seconds')} is what binds: the least {NAMES[name]} is {least}, of {at}."
    if name == "budget":
        return (
            f"--budget is what binds: the cheapest plan that holds costs {human(plan.layout.usd, 'USD')} an hour, {at}."
        )
    if name == "max_accelerators":
        return f"more accelerators are needed: {counted(plan.accelerators, 'accelerators')} hold it, {at}. --max-accelerators {plan.accelerators} finds it."
    if name == "on":
        return f"the machine is what binds: {at} holds it."
    return f"--{name} is what binds: {at} holds it."


def missed(miss: Miss | None) -> str:
    """What came nearest to fitting."""
    if miss is None:
        return ""
    kind = miss.config.kind
    need = f"{miss.what} need{'s' if miss.what == 'everything' else ''} {human(miss.needed_bytes, 'bytes')} of {human(miss.usable_bytes, 'bytes')}"
    return f"nearest to fitting: {need} on {kind.machine.on(miss.cluster)}, {miss.config.stored} weights."
