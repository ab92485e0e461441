"""tonnage prices: what machines cost, rented by the hour or bought, each price with its source and its age."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from tonnage.catalogue.offers import offers
from tonnage.catalogue.prices import Price
from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.kernel.message import Message
from tonnage.language import say, say_as, worded
from tonnage.question.form import Given, values
from tonnage.question.subjects.prices import PRICES
from tonnage.question.verbs import form_of
from tonnage.verbs.prices import document_of, name_of

HELP = (
    "what machines cost, rented by the hour or bought (with --api: tokens of hosted models), each price with its "
    "source and date; older than 90 days are marked"
)


def mode(words: Sequence[str]) -> ModuleType | None:
    """The module of what is asked, if it is not the list: `refresh` reads a new one, --api lists prices by the
    token.
    """
    if "refresh" in words[:1]:
        return import_module("tonnage.cli.forms.prices_refresh")
    return import_module("tonnage.cli.forms.prices_api") if "--api" in words else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("prices"))
    add_output(parser)


def run(arguments: Given) -> int:
    document = document_of(arguments)
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(builtins(document), name_of(arguments), values(arguments, PRICES)))
    return 0


def _none(name: str, options: dict[str, Any]) -> str:
    """Why nothing is listed: nothing is known, or nothing that is as the options ask."""
    of = f" of {name}" if name else ""
    filters = [option for option in PRICES if option.name in options and option.name in _KEYS]
    known = offers(name)
    if not known or not filters:
        return Message("no price{of} is known. Yours go in <config directory>/prices/.", of=of)
    have = "; ".join(f"{option.name}: {', '.join(_values(known, _KEYS[option.name]))}" for option in filters)
    flags = ", ".join(f"{option.flag} {options[option.name]}" for option in filters)
    return Message(
        "none of the {count} prices by the hour{of} has {flags}. They have {have}.",
        count=len(known),
        of=of,
        flags=flags,
        have=have,
    )


_KEYS = {"provider": "provider", "kind": "kind", "region": "region", "term": "term_months", "currency": "currency"}


def _values(known: Sequence[Price], key: str) -> list[str]:
    values = {getattr(price, key) for price in known}
    return [str(value) for value in sorted(values - {None})] + (["none"] if None in values else [])


def _lines(document: dict[str, Any], name: str, options: dict[str, Any]) -> list[str]:
    from tonnage.render.text import table_lines

    rows, sold = document["prices"], document["purchases"]
    of = rows[0]["accelerator"] if rows else name
    counts = (
        say(
            "{rows_count} prices by the hour of {of}, {sold_count} to buy",
            rows_count=len(rows),
            of=of,
            sold_count=len(sold),
        )
        if name
        else say("{rows_count} prices by the hour, {sold_count} to buy", rows_count=len(rows), sold_count=len(sold))
    )
    lines = [counts if rows or sold else worded(_none(name, options))]
    if rows:
        header = (
            "accelerator",
            say("an hour of one"),
            "provider",
            "instance",
            "x",
            "kind",
            "region",
            say("as of"),
            "age",
            "from",
        )
        lines += ["", *table_lines([_cells(row, document["as_of"]) for row in rows], header)]
    if sold:
        bought_cells = [
            (
                row["accelerator"],
                f"{row['usd']:,.0f} USD",
                row["name"],
                f"{row['power_watts']:,.0f} W" if row["power_watts"] else "-",
                row["as_of"],
                _age(row, document["as_of"]),
            )
            for row in sold
        ]
        lines += ["", *table_lines(bought_cells, ("accelerator", "price", "machine", "power", "as of", "age"))]
    lines += [
        "",
        *(say("note: {what}", what=worded(warning)) for warning in document["warnings"]),
        *(_of_one(rows, sold) if name else ()),
    ]
    return lines if lines[-1] else lines[:-1]


def _of_one(rows: list[dict[str, Any]], sold: list[dict[str, Any]]) -> list[str]:
    """Notes and sources, which a list of one accelerator has room for."""
    notes: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["note"]:
            notes.setdefault(row["note"], {})[row["provider"]] = None
    sources = dict.fromkeys([*(row["source"] for row in (*rows, *sold)), *(row["sizes_source"] for row in rows)])
    sources.pop("", None)
    return [
        *(say("note: {who}: {note}", who=", ".join(who), note=worded(note)) for note, who in notes.items()),
        *(say("source: {what}", what=source) for source in sources),
    ]


def _cells(row: dict[str, Any], today: str) -> tuple[Any, ...]:
    dollars = row["usd_per_accelerator_hour"]
    foreign = f"{row['price_per_hour'] / row['accelerators']:.3f} {row['currency']}"
    price_each = foreign if dollars is None else f"{dollars:.3f} USD"
    kind = (
        say("{kind}, {term_months} months", kind=say_as("price", row["kind"]), term_months=row["term_months"])
        if row["term_months"]
        else say_as("price", row["kind"])
    )
    return (
        row["accelerator"],
        price_each,
        row["provider"],
        row["instance"],
        _size(row),
        kind,
        row["region"],
        row["as_of"],
        _age(row, today),
        say(row["origin"]),
    )


def _size(row: dict[str, Any]) -> str:
    """Accelerators of the machine, or of those that are sold at a price by the accelerator: 1-8, or 1, 2, 4, 8."""
    sizes = row["sizes"] or [row["accelerators"]]
    first, last = sizes[0], sizes[-1]
    if len(sizes) > 2 and sizes == list(range(first, last + 1)):
        return f"{first}-{last}"
    return ", ".join(map(str, sizes))


def _age(row: dict[str, Any], today: str) -> str:
    if row["as_of"] > today:
        return say("later")
    return say("{age_days} d, stale", age_days=row["age_days"]) if row["stale"] else f"{row['age_days']} d"
