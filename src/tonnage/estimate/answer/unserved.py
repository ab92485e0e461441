"""Whether what fits does what was asked of it: the part of a verdict that is not memory."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.message import Message
from tonnage.kernel.units import human


def unserved(serving: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """Why the load is not served; nothing where it is, or where nobody asked.

    Of a trace, which ends, no queue grows without end: its service level alone is judged.
    """
    if serving.get("service_level", {}).get("met") is False:
        return "the service level is not met"
    if "request_rate" in question and "ttft_seconds" in serving and serving["ttft_seconds"] is None:
        return "the queue grows without end"
    return ""


def missed_limits(run: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """Which of its limits a training run misses, with what it takes and what it may take; nothing where it keeps them,
    or where it has none.

    `run`: the figures of the run, as Terms.
    """
    late, dear = run.get("deadline_met") is False, run.get("budget_met") is False
    if late:
        days, of_days = human(run["seconds"].value, "seconds"), human(question["deadline_seconds"]["value"], "seconds")
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


def _spent(run: Mapping[str, Any], question: Mapping[str, Any]) -> tuple[str, str]:
    """What the run takes of its budget, and the budget: in USD where it is money."""
    hours = run["accelerator_hours"].value
    if "budget" in question:
        usd = hours * question["price_per_accelerator_hour"]["value"]
        return human(usd, "USD"), human(question["budget"]["value"], "USD")
    return human(hours, "accelerator-hours"), human(run["budget_accelerator_hours"].value, "accelerator-hours")
