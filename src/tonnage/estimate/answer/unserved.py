"""Whether what fits does what was asked of it: the part of a verdict that is not memory."""

from collections.abc import Mapping

from msgspec import UnsetType

from tonnage.documents.question import Entry
from tonnage.documents.run import RunDocument
from tonnage.documents.serving import ServingDocument
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import human


def unserved(serving: ServingDocument[Term], question: Mapping[str, Entry]) -> str:
    """Why the load is not served; nothing where it is, or where nobody asked.

    Of a trace, which ends, no queue grows without end: its service level alone is judged.
    """
    if serving.service_level and not serving.service_level.met:
        return "the service level is not met"
    if "request_rate" in question and serving.ttft_seconds is None:
        return "the queue grows without end"
    return ""


def missed_limits(run: RunDocument[Term] | None, question: Mapping[str, Entry]) -> str:
    """Which of its limits a training run misses, with what it takes and what it may take; nothing where it keeps them,
    or where it has none.
    """
    if run is None:
        return ""
    late, dear = run.deadline_met is False, run.budget_met is False
    if late:
        days, of_days = _text(run.seconds), human(question["deadline_seconds"].value, "seconds")
    if dear:
        cost, of_cost = _spent(run, question)
    if late and dear:
        return Message(
            "misses the deadline: {days} of {of_days}, and the budget: {cost} of {of_cost}",
            days=days,
            of_days=of_days,
            cost=cost,
            of_cost=of_cost,
        )
    if late:
        return Message("misses the deadline: {days} of {of_days}", days=days, of_days=of_days)
    return Message("misses the budget: {cost} of {of_cost}", cost=cost, of_cost=of_cost) if dear else ""


def _spent(run: RunDocument[Term], question: Mapping[str, Entry]) -> tuple[str, str]:
    """What the run takes of its budget, and the budget: in USD where it is money."""
    if "budget" in question and run.accelerator_hours:
        usd = run.accelerator_hours.value * question["price_per_accelerator_hour"].value
        return human(usd, "USD"), human(question["budget"].value, "USD")
    return _text(run.accelerator_hours), _text(run.budget_accelerator_hours)


def _text(figure: Term | UnsetType) -> str:
    """A figure with its unit."""
    return human(figure.value, figure.unit) if figure else ""
