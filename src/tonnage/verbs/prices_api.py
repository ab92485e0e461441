"""`prices --api`: what a million tokens of hosted models cost."""

from datetime import date
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tonnage.catalogue import toml_files
from tonnage.catalogue.api_prices import api_prices, of_model
from tonnage.catalogue.models import find
from tonnage.catalogue.prices import STALE_DAYS
from tonnage.documents.prices import ApiPricesDocument, HostedRequest
from tonnage.documents.serving import HostedOffer
from tonnage.documents.term import with_figures
from tonnage.estimate.money.hosted import million_tokens, offer, request_price
from tonnage.formulas import service as h
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.kernel.registry import unknown
from tonnage.kernel.term import Term
from tonnage.question.form import Given, values
from tonnage.question.forms import word
from tonnage.question.subjects.prices import API_PRICES
from tonnage.verbs.answered import Answered


def answer(arguments: Given) -> Answered:
    """The prices that are asked for, and what the requests cost there."""
    filters = values(arguments, API_PRICES)
    today = filters.get("as_of", date.today())  # noqa: DTZ011 - prices have a day, no zone
    name = word(arguments.model, "MODEL") if arguments.model is not None else ""
    if name and find(name) is None:
        raise toml_files.missing("models", "model", name)
    request = _request(filters)
    matching = [
        price for price in (of_model(name) if name else api_prices()) if _is_of(price.provider, filters.get("provider"))
    ]
    if (
        filters.get("provider")
        and not matching
        and not [price for price in api_prices() if _is_of(price.provider, filters["provider"])]
    ):
        raise unknown(
            "provider of hosted models", filters["provider"], sorted({price.provider for price in api_prices()})
        )
    rows = sorted(
        ((price.model, request_price(price, *_lengths(request)), price) for price in matching),
        key=lambda row: (row[0], row[1].value),
    )
    prices = [_row(offer(price, today), one, request) for _, one, price in rows]
    document = ApiPricesDocument(
        as_of=today.isoformat(),
        stale_after_days=STALE_DAYS,
        model=name or None,
        request=request,
        prices=[with_figures(row, lambda term: term.document) for row in prices],
        warnings=_warnings(prices),
    )
    return Answered(document)


def _lengths(request: HostedRequest | None) -> tuple[int, int, int]:
    """Tokens of a prompt, of an answer, and of the prompt that are cached."""
    return (1, 1, 0) if request is None else (request.input_tokens, request.output_tokens, request.cached_tokens)


def _row(price: HostedOffer[Term], one: Term, request: HostedRequest | None) -> HostedOffer[Term]:
    """A provider's prices with what such requests cost; without any no request has a price."""
    if request is None:
        return price
    a_day: Term | UnsetType = UNSET
    if request.requests_per_day:
        a_day = Term.of(
            "such requests of a day",
            h.requests_usd,
            source=one.source,
            USD_req=one.value,
            n_req=request.requests_per_day,
        )
    million = million_tokens(one, request.input_tokens, request.output_tokens)
    return replace(price, request=one, cost_per_million_tokens=million, usd_per_day=a_day)


def _is_of(provider: str, wanted: str | None) -> bool:
    return wanted is None or toml_files.key(provider) == toml_files.key(wanted)


def _request(filters: dict[str, Any]) -> HostedRequest | None:
    """The requests that were said; None where none were."""
    names = ("input_tokens", "output_tokens", "cached_tokens", "requests_per_day")
    amounts = {name: filters[name] for name in names if name in filters}
    if not amounts:
        return None
    missing = [name for name in names[:2] if name not in amounts]
    if missing:
        raise InvalidInput(
            "what a request costs needs {--input-tokens} and {--output-tokens}: --{missing} is missing.",
            missing=missing[0].replace("_", "-"),
        )
    if amounts.get("cached_tokens", 0) > amounts["input_tokens"]:
        raise InvalidInput(
            "{--cached-tokens} must be at most the {input_tokens:,} of {--input-tokens}. Got {cached_tokens:,}.",
            input_tokens=amounts["input_tokens"],
            cached_tokens=amounts["cached_tokens"],
        )
    for field in ("input_tokens", "output_tokens", "requests_per_day"):
        if amounts.get(field) == 0:
            raise InvalidInput("--{each} must be at least 1. Got 0.", each=field.replace("_", "-"))
    return HostedRequest(**{"cached_tokens": 0, "requests_per_day": None, **amounts})


def _warnings(rows: list[HostedOffer[Term]]) -> list[str]:
    stale = sum(row.stale for row in rows)
    if not stale:
        return []
    return [
        Message(
            "{stale} of {count} prices is older than {stale_days} days: they may have moved."
            if stale == 1
            else "{stale} of {count} prices are older than {stale_days} days: they may have moved.",
            stale=stale,
            count=len(rows),
            stale_days=STALE_DAYS,
        )
    ]
