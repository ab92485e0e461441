"""The figures of a row, read from an answer. Nothing is estimated here but the price of a step from that of an hour."""

from functools import lru_cache
from math import isfinite
from typing import Any

from msgspec import UnsetType

from tonnage.documents.serving import EncodedDocument
from tonnage.estimate.answer.answers import Answer
from tonnage.estimate.answer.served import hour
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.inputs import Question
from tonnage.estimate.money.bill import BillOptions, rented
from tonnage.formulas.cost import rent_usd
from tonnage.formulas.service import usd_per_million_tokens
from tonnage.kernel.term import Term
from tonnage.search.compare.asking import Outcome
from tonnage.search.compare.columns import PLANS
from tonnage.spec import Cluster, Rollout

THOUSAND = 1000  # millions in a billion
MONEY = "usd"  # in the names of figures of money
GIVEN = "given"


def figures(verb: str, outcome: Outcome) -> dict[str, Any]:
    """The columns that an outcome fills, by their names; None for what nobody knows."""
    cluster, answer = outcome.cluster, outcome.answer
    row: dict[str, Any] = {
        "on": cluster.name,
        "accelerator": cluster.accelerator.name,
        "accelerators": cluster.size,
        "nodes": cluster.num_nodes,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
    }
    if answer is None:
        return row
    settings = {name: entry.value for name, entry in answer.question.items()}
    row["accelerators"] = settings.get("accelerators", cluster.size) + settings.get("rollout_accelerators", 0)
    row |= {column.name: settings[column.name] for column in PLANS[verb] if column.name in settings}
    row |= _offer(outcome, settings.get("price"))
    row |= {"needed_bytes": answer.needed_bytes, "usable_bytes": answer.usable_bytes}
    row |= _served(answer) if verb == "serve" else _trained(outcome, answer)
    if outcome.unpriced:
        row |= {name: None for name in row if MONEY in name}
    return row


def _offer(outcome: Outcome, offer: str | None) -> dict[str, Any]:
    """The columns on the offer: the provider, and the number of accelerators that are paid for."""
    if outcome.said.get("price_per_accelerator_hour") is not None:
        return {"price": GIVEN, "accelerators_paid": _paid(outcome).size}
    known = offer is not None and not outcome.unpriced
    return {"price": offer, "accelerators_paid": _rented(ByIdentity(_paid(outcome)), _money(outcome))} if known else {}


@lru_cache(maxsize=256)
def _rented(cluster: ByIdentity, money: BillOptions) -> int | None:
    return rented(cluster.thing, money)


def _paid(outcome: Outcome) -> Cluster:
    """The machines that are paid for: those of the question, and those that generate apart from them."""
    question = outcome.answer.question if outcome.answer else {}
    names = ("rollout_accelerators", "accelerators")
    apart, train = (question[name].value if name in question else 0 for name in names)
    if not apart or train + apart == outcome.cluster.size:  # or divided between both
        return outcome.cluster
    return _with_rollouts(ByIdentity(outcome.cluster), apart)


@lru_cache(maxsize=256)
def _with_rollouts(cluster: ByIdentity, apart: int) -> Cluster:
    from tonnage.estimate.post_training.rollout import whole_cluster

    return whole_cluster(Rollout(rollout_accelerators=apart), cluster.thing)


def _money(outcome: Outcome) -> BillOptions:
    return BillOptions(**{name: outcome.said[name] for name in BillOptions.__struct_fields__ if name in outcome.said})


def _served(answer: Answer) -> dict[str, Any]:
    serving = answer.serving
    return {
        "weights_stored": answer.question["weights"].value if "weights" in answer.question else None,
        "requests_that_fit": _whole(serving.concurrency),
        "kv_capacity_tokens": _whole(serving.kv_capacity_tokens),
        "longest_context_tokens": _whole(serving.longest_context),
        "ttft_seconds": _value(serving.ttft_seconds),
        "tpot_seconds": _value(serving.tpot_seconds),
        "tokens_per_second": _value(serving.tokens_per_second),
        "tokens_per_second_per_user": _value(serving.tokens_per_second_per_user),
        "usd_per_hour": _value(answer.bill.cost if answer.bill else None),
        "usd_per_million_tokens": _value(serving.cost_per_million_tokens),
        "usd_per_million_output_tokens": _value(serving.cost_per_million_output_tokens_all),
        **(_encoded(serving.encoded) if serving.encoded else {}),
    }


def _encoded(found: EncodedDocument[Term]) -> dict[str, Any]:
    """The columns that only models have that write no text of their own."""
    if found.item == "files":
        return {
            "audio_seconds_per_second": _value(found.per_second),
            "usd_per_audio_hour": _value(found.cost_per_audio_hour),
        }
    return {"items_per_second": _value(found.per_second)}


def _trained(outcome: Outcome, answer: Answer) -> dict[str, Any]:
    run = answer.run
    step, rate = _value(answer.step_time), _value(run.tokens_per_second if run else None)
    row: dict[str, Any] = {"step_seconds": step, "tokens_per_second": rate, "mfu": _value(run.mfu if run else None)}
    if run and run.seconds:
        row |= {
            "run_seconds": _value(run.seconds),
            "run_accelerator_hours": _value(run.accelerator_hours),
            "run_usd": _value(answer.bill.cost if answer.bill else None),
        }
    an_hour = _hour(outcome) if step and rate and not outcome.unpriced else None
    if an_hour is not None:
        row |= {
            "usd_per_hour": an_hour,
            "usd_per_step": rent_usd.evaluate(nodes=1, tau=step, USD_hour=an_hour),
            "usd_per_billion_tokens": usd_per_million_tokens.evaluate(USD_all=an_hour, tps=rate) * THOUSAND,
        }
    return row


def _hour(outcome: Outcome) -> float | None:
    """An hour of all accelerators, at the price that the bill of the step or the run has."""
    price = outcome.said.get("price_per_accelerator_hour")
    return _value(hour(_paid(outcome), _money(outcome), price, Question()).cost)


def _value(term: Term | UnsetType | None) -> float | None:
    """A figure as a plain number; None for one that there is not."""
    return float(term.value) if term and isfinite(term.value) else None


def _whole(term: Term | UnsetType | None) -> int | None:
    value = _value(term)
    return None if value is None else int(value)
