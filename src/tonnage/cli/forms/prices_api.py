"""tonnage prices --api: what a million tokens of hosted models cost, each price with its source and age; and what
given requests cost.
"""

import argparse
from datetime import date
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tonnage.catalogue import toml_files
from tonnage.catalogue.api_prices import api_prices, of_model
from tonnage.catalogue.models import find
from tonnage.catalogue.prices import STALE_DAYS
from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.documents.prices import ApiPricesDocument, HostedRequest
from tonnage.documents.serving import HostedOffer
from tonnage.documents.term import with_figures
from tonnage.estimate.money.hosted import million_tokens, offer, request_price
from tonnage.formulas import service as h
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.kernel.registry import unknown
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.language import say, worded
from tonnage.question.given import Given, values
from tonnage.question.subjects.prices import API_PRICES
from tonnage.question.texts import word
from tonnage.question.verbs import form_of

HELP = (
    "what a million tokens of hosted models cost (USD), each price with its source and date; and what requests "
    "of a length cost there"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("prices", "api"))
    add_output(parser)


def run(arguments: Given) -> int:
    given = values(arguments, API_PRICES)
    today = given.get("as_of", date.today())  # noqa: DTZ011 - prices have a day, no zone
    name = word(arguments.model, "MODEL") if arguments.model is not None else ""
    if name and find(name) is None:
        raise toml_files.missing("models", "model", name)
    request = _request(given)
    found = [
        price for price in (of_model(name) if name else api_prices()) if _is_of(price.provider, given.get("provider"))
    ]
    if (
        given.get("provider")
        and not found
        and not [price for price in api_prices() if _is_of(price.provider, given["provider"])]
    ):
        raise unknown(
            "provider of hosted models", given["provider"], sorted({price.provider for price in api_prices()})
        )
    rows = sorted(
        ((price.model, request_price(price, *_lengths(request)), price) for price in found),
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
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(builtins(document)))
    return 0


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


def _is_of(provider: str, asked: str | None) -> bool:
    return asked is None or toml_files.key(provider) == toml_files.key(asked)


def _request(given: dict[str, Any]) -> HostedRequest | None:
    """The requests that were said; None where none were."""
    names = ("input_tokens", "output_tokens", "cached_tokens", "requests_per_day")
    said = {name: given[name] for name in names if name in given}
    if not said:
        return None
    missing = [name for name in names[:2] if name not in said]
    if missing:
        raise InvalidInput(
            Message(
                "what a request costs needs --input-tokens and --output-tokens: --{missing} is missing.",
                missing=missing[0].replace("_", "-"),
            )
        )
    if said.get("cached_tokens", 0) > said["input_tokens"]:
        raise InvalidInput(
            Message(
                "--cached-tokens must be at most the {input_tokens:,} of --input-tokens. Got {cached_tokens:,}.",
                input_tokens=said["input_tokens"],
                cached_tokens=said["cached_tokens"],
            )
        )
    for each in ("input_tokens", "output_tokens", "requests_per_day"):
        if said.get(each) == 0:
            raise InvalidInput(Message("--{each} must be at least 1. Got 0.", each=each.replace("_", "-")))
    return HostedRequest(**{"cached_tokens": 0, "requests_per_day": None, **said})


def _warnings(rows: list[HostedOffer[Term]]) -> list[str]:
    stale = sum(row.stale for row in rows)
    return (
        [
            (
                Message(
                    "{stale} of {count} prices is older than {stale_days} days: they may have moved.",
                    stale=stale,
                    count=len(rows),
                    stale_days=STALE_DAYS,
                )
                if stale == 1
                else Message(
                    "{stale} of {count} prices are older than {stale_days} days: they may have moved.",
                    stale=stale,
                    count=len(rows),
                    stale_days=STALE_DAYS,
                )
            )
        ]
        if stale
        else []
    )


def _lines(document: dict[str, Any]) -> list[str]:
    from tonnage.render.text import table_lines

    rows, request, name = document["prices"], document["request"], document["model"]
    if not rows:
        if name:
            return [
                say("no price of {name} by the token is known. Yours go in <config directory>/api_prices/.", name=name)
            ]
        return [say("no price by the token is known. Yours go in <config directory>/api_prices/.")]
    header = [
        "model",
        "provider",
        "input",
        "cached",
        "output",
        *([say("a request"), say("a million tokens")] if request else ()),
        *([say("a day")] if request and request["requests_per_day"] else ()),
        say("as of"),
        "age",
    ]
    lines = [
        say("{rows_count} prices of {name} by the token, USD a million", rows_count=len(rows), name=name)
        if name
        else say("{rows_count} prices by the token, USD a million", rows_count=len(rows))
    ]
    if request:
        lines.append(
            say(
                "a request: {input_tokens} tokens, {cached_tokens} of them cached, and an answer of {output_tokens}",
                input_tokens=f"{request['input_tokens']:,}",
                cached_tokens=f"{request['cached_tokens']:,}",
                output_tokens=f"{request['output_tokens']:,}",
            )
        )
    lines += ["", *table_lines([_cells(row, request) for row in rows], header), ""]
    lines += [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]
    if name:
        notes = {row["note"]: row["provider"] for row in rows if row["note"]}
        lines += [
            say("note: {provider}: {note}", provider=provider, note=worded(note)) for note, provider in notes.items()
        ]
        lines += [say("source: {what}", what=source) for source in dict.fromkeys(row["source"] for row in rows)]
        lines.append(
            say(
                "beside own machines: tonnage serve {name} --on CLUSTER --input-tokens N --output-tokens N --users N",
                name=name,
            )
        )
    return lines if lines[-1] else lines[:-1]


def _cells(row: dict[str, Any], request: dict[str, Any] | None) -> list[str]:
    made = [
        row["model"],
        row["provider"],
        *(
            "-" if row[f"{each}_usd"] is None else f"{row[f'{each}_usd']:.3f}"
            for each in ("input", "cached_input", "output")
        ),
    ]
    if request:
        made += [f"{row['request']['value']:.6f} USD", human(row["cost_per_million_tokens"]["value"], "USD")]
    if request and request["requests_per_day"]:
        made.append(human(row["usd_per_day"]["value"], "USD"))
    return [*made, row["as_of"], f"{row['age_days']} d{(say(', stale') if row['stale'] else '')}"]
