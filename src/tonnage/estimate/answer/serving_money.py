"""What serving costs and draws: an hour of the machines, and a million tokens of it."""

from datetime import date
from functools import lru_cache
from typing import Any

from tonnage.estimate.answer.timed import today
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.inputs import Question
from tonnage.estimate.money.bill import Bill, BillOptions, bill
from tonnage.estimate.serving_time.speed import Speed
from tonnage.formulas import service as h
from tonnage.kernel.term import Term
from tonnage.kernel.units import HOUR
from tonnage.spec import Cluster

OF = "an hour"


def hour(cluster: Cluster, options: BillOptions, price: float | None, question: Question) -> Bill:
    """The bill of an hour of all machines, busy or not."""
    bill, notes = _hour(ByIdentity(cluster), options, price, today())
    for name, entry in notes.entries.items():
        question.put(name, entry.value, entry.origin, entry.why)
    for warning in notes.warnings:
        question.warn(warning)
    return bill


@lru_cache(maxsize=64)
def _hour(cluster: ByIdentity, options: BillOptions, price: float | None, day: date) -> tuple[Bill, Question]:
    """Prices are read once a day."""
    notes = Question()
    seconds = Term.of("an hour", h.paid_seconds, tau=HOUR)
    return bill(cluster.thing, seconds, OF, options, notes, price=price, today=day), notes


def prices(bill: Bill, cluster: Cluster, speed: Speed) -> dict[str, Any]:
    """Price and energy of a million tokens under this load, and with one user on each replica; None where no price,
    or no power, is known.
    """
    everything, answers = speed.all_tokens_per_second, speed.tokens_per_second
    prompts, alone = everything - answers, speed.alone_tokens_per_second
    cost = bill.cost
    figures: dict[str, Any] = {
        "cost_per_million_tokens": _usd("a million tokens of prompts and answers", cost, everything),
        "cost_per_million_input_tokens": _part(
            "a million tokens of prompts, by the time that they take", cost, prompts, speed.prompt_share
        ),
        "cost_per_million_output_tokens": _part(
            "a million tokens of answers, by the time that they take", cost, answers, speed.answer_share
        ),
        "cost_per_million_output_tokens_all": _usd(
            "a million tokens of answers, if they pay for the prompts too", cost, answers
        ),
        "cost_per_million_tokens_alone": _usd(
            "a million tokens of prompts and answers, one user a replica", cost, alone
        ),
    }
    own = bill.ownership.own_hour if bill.ownership else None
    if own is not None:
        figures["own_cost_per_million_tokens"] = Term.of(
            "a million tokens of prompts and answers on own machines",
            h.usd_per_million_tokens,
            source=own.source,
            USD_all=own.value * cluster.size,
            tps=everything,
        )
    figures["energy_per_million_tokens"] = _joules(
        "energy of a million tokens of prompts and answers", bill.energy, everything
    )
    figures["energy_per_million_tokens_alone"] = _joules(
        "energy of a million tokens of prompts and answers, one user a replica", bill.energy, alone
    )
    return figures


def _usd(name: str, cost: Term | None, rate: float) -> Term | None:
    return (
        None
        if cost is None
        else Term.of(name, h.usd_per_million_tokens, source=cost.source, basis=cost.basis, USD_all=cost.value, tps=rate)
    )


def _part(name: str, cost: Term | None, rate: float, share: Term | None) -> Term | None:
    """What is paid for these tokens alone."""
    full_price = _usd("if they paid for everything", cost, rate)
    return None if full_price is None or share is None else Term.product(name, "USD", full_price, share)


def _joules(name: str, energy: Term | None, rate: float) -> Term | None:
    return (
        None
        if energy is None
        else Term.of(
            name, h.joules_per_million_tokens, source=energy.source, basis=energy.basis, en=energy.value, tps=rate
        )
    )
