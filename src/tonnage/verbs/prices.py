"""`prices`: what machines cost, rented by the hour or bought."""

from collections.abc import Sequence
from datetime import date
from typing import Any, cast

from tonnage.catalogue.accelerators import accelerator
from tonnage.catalogue.clusters import cluster
from tonnage.catalogue.offers import bought, in_usd, offers
from tonnage.catalogue.prices import DOLLARS, STALE_DAYS, Price, Purchase, age_days, by_accelerator, is_stale, origin
from tonnage.documents.prices import PriceKind, PriceRow, PricesDocument, PurchaseRow
from tonnage.kernel.errors import TonnageError, UnknownName
from tonnage.kernel.message import Message, listed
from tonnage.question.form import Given, values
from tonnage.question.forms import word
from tonnage.question.subjects.prices import PRICES
from tonnage.verbs.answered import Answered


def document_of(arguments: Given) -> PricesDocument:
    """The prices that are asked for."""
    filters = values(arguments, PRICES)
    today = filters.get("as_of", date.today())  # noqa: DTZ011 - prices have a day, no zone
    rates = filters.get("exchange_rate", {})
    name = name_of(arguments)
    matching = offers(
        name,
        provider=filters.get("provider", ""),
        kind=filters.get("kind", ""),
        region=filters.get("region", ""),
        currency=filters.get("currency", ""),
        term_months=filters.get("term"),
    )
    sold = () if {"provider", "kind", "region", "term", "currency"} & set(filters) else bought(name)
    rows = sorted((_row(price, rates, today) for price in matching), key=_order)
    machines = [_sold(row, today) for row in sold]
    return PricesDocument(
        as_of=today.isoformat(),
        stale_after_days=STALE_DAYS,
        rates=rates,
        prices=rows,
        purchases=machines,
        warnings=[*_warnings(rows, machines, rates), *_later([*rows, *machines], today)],
    )


def name_of(arguments: Given) -> str:
    """The accelerator whose prices are asked for; empty: all."""
    name = word(arguments.name, "ACCELERATOR") if arguments.name is not None else ""
    if not name or name in by_accelerator():
        return name
    try:
        return accelerator(name).name
    except UnknownName:
        try:  # a machine as people call it: a product, an instance, a node
            return cluster(name).accelerator.name
        except TonnageError:
            return name  # whose error says the nearest names


def answer(arguments: Given) -> Answered:
    return Answered(document_of(arguments))


def _later(listed: Sequence[PriceRow | PurchaseRow], today: date) -> list[str]:
    """Prices are kept as of one day each: what they were before it, nobody here knows."""
    later = sorted(row.as_of for row in listed if row.as_of > today.isoformat())
    if not later:
        return []
    are = "price is" if len(later) == 1 else "prices are"
    return [
        (
            Message(
                "{count} {are} of days after {today}, the first of {later}: they do not say what was paid on that day.",
                count=len(later),
                are=are,
                today=today.isoformat(),
                later=later[0],
            )
        )
    ]


def _row(price: Price, rates: dict[str, float], today: date) -> PriceRow:
    known = price.currency == DOLLARS or price.currency in rates
    return PriceRow(
        provider=price.provider,
        instance=price.instance,
        accelerator=price.accelerator,
        accelerators=price.accelerators,
        sizes=list(price.sizes),
        sizes_source=price.sizes_source,
        region=price.region,
        kind=cast("PriceKind", price.kind),
        term_months=price.term_months,
        currency=price.currency,
        price_per_hour=price.price_per_hour,
        usd_per_accelerator_hour=in_usd(price, rates) / price.accelerators if known else None,
        source=price.source,
        as_of=price.as_of,
        age_days=age_days(price, today),
        stale=is_stale(price, today),
        own=origin(price) == "own",
        origin=origin(price),
        note=price.note,
    )


def _sold(row: Purchase, today: date) -> PurchaseRow:
    return PurchaseRow(
        name=row.name,
        accelerator=row.accelerator,
        accelerators=row.accelerators,
        usd=row.usd,
        power_watts=row.power_watts,
        source=row.source,
        as_of=row.as_of,
        age_days=age_days(row, today),
        stale=is_stale(row, today),
        note=row.note,
    )


def _order(row: PriceRow) -> tuple[Any, ...]:
    """By accelerator, the user's own and the cheapest first; prices that are not in dollars last."""
    dollars = row.usd_per_accelerator_hour
    return (row.accelerator, not row.own, dollars is None, dollars or row.price_per_hour / row.accelerators)


def _warnings(rows: list[PriceRow], sold: list[PurchaseRow], rates: dict[str, float]) -> list[str]:
    warnings: list[str] = []
    if stale := sum(row.stale for row in rows):
        oldest = max(row.age_days for row in rows)
        warnings.append(
            Message(
                (
                    "{stale} of {count} prices by the hour is older than {stale_days} days, the oldest {oldest} "
                    "days: it may have moved."
                )
                if stale == 1
                else (
                    "{stale} of {count} prices by the hour are older than {stale_days} days, the oldest {oldest} "
                    "days: it may have moved."
                ),
                stale=stale,
                count=len(rows),
                stale_days=STALE_DAYS,
                oldest=oldest,
            )
        )
    if stale := sum(row.stale for row in sold):
        warnings.append(
            Message(
                "{stale} of {count} prices to buy is older than {stale_days} days."
                if stale == 1
                else "{stale} of {count} prices to buy are older than {stale_days} days.",
                stale=stale,
                count=len(sold),
                stale_days=STALE_DAYS,
            )
        )
    if foreign := sorted({row.currency for row in rows if row.usd_per_accelerator_hour is None}):
        warnings.append(
            Message(
                "prices in {foreign} are not compared with the others: give {--exchange-rate} "
                "{foreign2}=UNITS that one US dollar buys.",
                foreign=listed(foreign),
                foreign2=foreign[0],
            )
        )
    return warnings
