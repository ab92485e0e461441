"""What the short text says of the deadline and the budget of a training run: kept, or what would keep them."""

from collections.abc import Iterator, Mapping
from typing import Any

from tonnage.documents.question import ASKED
from tonnage.kernel.units import money, significant
from tonnage.language import say
from tonnage.render.brief.numbers import in_unit, many, seconds, seconds_unit, target
from tonnage.render.brief.words import flags_of, value_of


def limits_kept(document: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The deadline and the budget that are kept, each with whether that is sure: also at the high end of the error
    band.
    """
    run, question, most = document.get("run", {}), document["question"], _most(document)
    if run.get("deadline_met"):
        taken = run["seconds"]["value"]
        yield deadline_kept(taken, taken * most, value_of(question, "deadline_seconds"))
    if run.get("budget_met"):
        spent, budget, unit_of_budget = _budget(document)
        limit = amount(budget, unit_of_budget)
        found, high = money(spent), money(spent * most)
        if is_length_of_budget(question):
            bought = many(run["tokens"]["value"])
            yield say("{budget} buy {tokens} tokens", budget=limit, tokens=bought), True
        elif spent * most <= budget:
            yield say("meets the budget: {found} of {limit}", found=found, limit=limit), True
        else:
            yield say("budget tight: {found} of {limit}, up to {high}", found=found, limit=limit, high=high), False


def deadline_kept(taken: float, most: float, deadline: float) -> tuple[str, bool]:
    """That a run of `taken` seconds keeps its deadline [seconds], and whether that is sure: also where it takes `most`,
    the high end of the error band.
    """
    limit, unit = target(deadline), seconds_unit(deadline)
    unit = unit if taken >= unit[0] else seconds_unit(taken)
    found, high = in_unit(taken, unit), in_unit(most, unit)
    if most <= deadline:
        return say("meets the deadline: {found} of {limit}", found=found, limit=limit), True
    return say("deadline tight: {found} of {limit}, up to {high}", found=found, limit=limit, high=high), False


def missed_text(document: Mapping[str, Any]) -> str:
    """The deadline and the budget that are missed, and what keeps them; nothing where none is missed."""
    return say("; ").join(_missed(document))


def _missed(document: Mapping[str, Any]) -> Iterator[str]:
    run, question = document.get("run", {}), document["question"]
    if run.get("deadline_met") is False:
        deadline = target(value_of(question, "deadline_seconds"))
        taken = seconds(run["seconds"]["value"])
        yield say("misses the deadline: {time} of {deadline}", time=taken, deadline=deadline)
        larger = run.get("meets_deadline")
        if not larger:
            yield say("no larger machine that was tried meets it")
        elif larger["usd"] is None:
            yield say("{machine} takes {time}", machine=larger["on"], time=seconds(larger["seconds"]))
        else:
            taken, usd = seconds(larger["seconds"]), money(larger["usd"])
            yield say("{machine} takes {time} for {usd} USD", machine=larger["on"], time=taken, usd=usd)
    if run.get("budget_met") is False:
        spent, budget, unit = _budget(document)
        limit, taken = amount(budget, unit), money(spent) if unit else amount(spent, unit)
        yield say("misses the budget: {spent} of {budget}", spent=taken, budget=limit)
        if move := cheap_enough(document):
            yield say("met with {option}", option=flags_of(move))
        elif bought := run.get("tokens_for_budget"):
            yield say("it buys {tokens} tokens", tokens=many(bought["value"]))


def cheap_enough(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first suggestion that fits and with which the run keeps its budget, as much cheaper as its tokens are; None
    where none does.
    """
    spent, budget, unit = _budget(document)
    for move in document.get("advice", ()):
        change = move.get("usd_change" if unit == "USD" else "time_change")
        keeps_run = move["changes"] in ("nothing", "workload") and not {"on", "sequence_length"} & move["change"].keys()
        if move["fits"] and keeps_run and change is not None and spent * (1 + change) <= budget:
            return dict(move)
    return None


def change_that_keeps(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The change that keeps the deadline or the budget that is missed; None where none is known, or both are missed."""
    run = document.get("run", {})
    late, dear = run.get("deadline_met") is False, run.get("budget_met") is False
    if late and not dear and run.get("meets_deadline"):
        return {"on": run["meets_deadline"]["on"]}
    move = cheap_enough(document) if dear and not late else None
    return move["change"] if move else None


def is_length_of_budget(question: Mapping[str, Any]) -> bool:
    """Whether the run is as long as its budget lasts, as nothing else says how long it is."""
    return question["tokens"]["from"] not in ASKED and not {"epochs", "max_steps"} & question.keys()


def amount(value: float, unit: str) -> str:
    """Money or GPU-hours, with the unit."""
    if unit == "USD":
        return f"{money(value)} USD"
    return say("{hours} GPU-hours", hours=many(value) if value >= 1e6 else significant(value))


def _budget(document: Mapping[str, Any]) -> tuple[float, float, str]:
    """What the run takes of its budget, the budget, and the unit of both: USD, or "" for GPU-hours."""
    question, hours = document["question"], document["run"]["accelerator_hours"]["value"]
    if "budget" in question:
        return hours * value_of(question, "price_per_accelerator_hour"), value_of(question, "budget"), "USD"
    return hours, document["run"]["budget_accelerator_hours"]["value"], ""


def _most(document: Mapping[str, Any]) -> float:
    """How many times as long a step takes at the high end of its error band."""
    band = document.get("run", {}).get("step_time_band")
    return float(band[1] / document["step_time"]["value"]) if band else 1.0
