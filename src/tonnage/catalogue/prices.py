"""Dated prices: catalogue/prices/*.toml -> Price (rented, by the hour) and Purchase (bought).

The user's own files come first, then those that `tonnage prices refresh` read and the shipped ones: of these two, the
newer ones.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tonnage.catalogue import refreshed, toml_files
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message

KINDS = ("on-demand", "spot", "reserved")
MAX_TERM_MONTHS = 60  # months
STALE_DAYS = 90  # prices move by tens of percent in a year
DOLLARS = "USD"
Origin = Literal["own", "refreshed", "shipped"]
_CURRENCY = re.compile(r"[A-Z]{3}")
RowName = Callable[
    [], Message
]  # how errors call a row: put into words only for an error, as lists have hundreds of rows


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of one machine for an hour: list price before tax and discounts, without storage and traffic.

    `price_per_hour` is in `currency`; `usd_per_hour` the same in US dollars, None where the price is in another
    currency, because no rate of exchange is assumed. `term_months`: term of a reservation, None where the provider does
    not state it. `index`: an average of what others paid, not an offer. `sizes`: for a price per accelerator, how many
    a machine sold at it may have, and `sizes_source` the source of that; without them only one.
    """

    provider: str
    instance: str
    accelerator: str
    accelerators: int
    region: str
    kind: str
    source: str
    as_of: str
    usd_per_hour: float | None = None
    currency: str = DOLLARS
    price_per_hour: float = 0.0
    term_months: int | None = None
    index: bool = False
    note: str = ""
    sizes: tuple[int, ...] = ()
    sizes_source: str = ""

    @property
    def machines(self) -> "tuple[Price, ...]":
        """The machines sold at this price: those of `sizes`, or the row's own."""
        if not self.sizes:
            return (self,)
        return tuple(
            replace(
                self,
                accelerators=size,
                sizes=(),
                price_per_hour=self.price_per_hour * size,
                usd_per_hour=None if self.usd_per_hour is None else self.usd_per_hour * size,
            )
            for size in self.sizes
        )

    @property
    def price_per_accelerator_hour(self) -> float:
        """Price of an accelerator for an hour, in `currency`."""
        return self.price_per_hour / self.accelerators

    @property
    def usd_per_accelerator_hour(self) -> float:
        """Price of an accelerator for an hour in US dollars; MissingDatum where the price is in another currency."""
        if self.usd_per_hour is None:
            raise MissingDatum(
                "{provider} {instance} is priced in {currency}: give a rate, such as {currency}=7, for USD.",
                provider=self.provider,
                instance=self.instance,
                currency=self.currency,
            )
        return self.usd_per_hour / self.accelerators


class Purchase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a machine or a card, in US dollars before tax, and its maximum power in watts."""

    name: str
    accelerator: str
    accelerators: int
    usd: float
    source: str
    as_of: str
    power_watts: float | None = None
    note: str = ""


class PriceFile(Struct, forbid_unknown_fields=True):
    """The form of a file; docs/catalogue.md explains each key."""

    price: list[Price] = []
    purchase: list[Purchase] = []


@cache
def own_prices() -> tuple[Price, ...]:
    """The hourly prices of the user's own files."""
    return tuple(price for path in toml_files.user_files("prices") for price in load(path).price)


@cache
def refreshed_prices() -> tuple[Price, ...]:
    """Prices read by `tonnage prices refresh` that are not older than the shipped ones."""
    candidates = tuple(
        Price(
            provider=cloud.provider,
            source=cloud.source,
            instance=row.instance,
            accelerator=row.accelerator,
            accelerators=row.accelerators,
            region=row.region,
            kind=row.kind,
            as_of=row.as_of,
            usd_per_hour=row.usd_per_hour,
            price_per_hour=row.usd_per_hour,
        )
        for cloud in refreshed.load(refreshed.path()).clouds
        for row in cloud.price
    )
    shipped = _newest(_all_shipped())
    return tuple(price for price in candidates if price.as_of >= shipped.get(_what(price), ""))


@cache
def prices() -> tuple[Price, ...]:
    """All hourly prices, the user's own first. The newest source wins: for a provider, kind and accelerator, refreshed
    prices override older shipped ones.
    """
    fresh = _newest(refreshed_prices())
    shipped = (price for price in _all_shipped() if _what(price) not in fresh)
    return own_prices() + refreshed_prices() + tuple(shipped)


@cache
def by_accelerator() -> dict[str, tuple[Price, ...]]:
    """All hourly prices by accelerator: a refreshed file has thousands of rows."""
    rows: dict[str, list[Price]] = {}
    for price in prices():
        rows.setdefault(price.accelerator, []).append(price)
    return {name: tuple(group) for name, group in rows.items()}


@cache
def providers() -> tuple[str, ...]:
    """Names of all providers."""
    return tuple(sorted({price.provider for price in prices()}))


@cache
def regions() -> tuple[str, ...]:
    """Names of all regions with a price, and the one for prices that hold everywhere."""
    return tuple(sorted({price.region for price in prices()}))


@cache
def currencies() -> tuple[str, ...]:
    """Currencies of prices, US dollars among them."""
    return tuple(sorted({price.currency for price in prices()}))


def origin(price: Price) -> Origin:
    """The origin of a row: the user's own files, refreshed, or shipped."""
    return "own" if price in own_prices() else "refreshed" if price in _refreshed() else "shipped"


@cache
def purchases() -> tuple[Purchase, ...]:
    """All purchase prices, the user's own first."""
    paths = [*toml_files.user_files("prices"), *_shipped()]
    return tuple(purchase for path in paths for purchase in load(path).purchase)


def forget() -> None:
    """Drop the cached prices, after the files or the configuration directory have changed."""
    for known in (
        own_prices,
        refreshed_prices,
        _refreshed,
        prices,
        by_accelerator,
        providers,
        regions,
        currencies,
        purchases,
    ):
        known.cache_clear()


def age_days(row: Price | Purchase, today: date | None = None) -> int:
    """Days since the row's price was published or read; 0 for a day after `today`."""
    day = today or date.today()  # noqa: DTZ011 - a price list has a day, no zone
    return max(0, (day - date.fromisoformat(row.as_of)).days)


def is_stale(row: Price | Purchase, today: date | None = None) -> bool:
    """Whether the row is older than STALE_DAYS."""
    return age_days(row, today) > STALE_DAYS


def staleness(row: Price | Purchase, today: date | None = None) -> str:
    """The warning about a row that is older than STALE_DAYS; empty for a newer one."""
    if not is_stale(row, today):
        return ""
    name = f"{row.provider} {row.instance}" if isinstance(row, Price) else row.name
    return Message(
        "the price of {name} is {age_days} days old ({as_of}): prices older than {stale_days} days may have moved.",
        name=name,
        age_days=age_days(row, today),
        as_of=row.as_of,
        stale_days=STALE_DAYS,
    )


def load(path: Path) -> PriceFile:
    """Read one file, strictly."""
    form = toml_files.read(path, PriceFile)
    rented = [
        _priced(
            price,
            partial(Message, "{path}: price {number} ({instance})", path=path, number=number, instance=price.instance),
        )
        for number, price in enumerate(form.price, 1)
    ]
    for number, purchase in enumerate(form.purchase, 1):
        _check_purchase(
            purchase,
            partial(
                Message, "{path}: purchase {number} ({purchase})", path=path, number=number, purchase=purchase.name
            ),
        )
    return PriceFile(price=rented, purchase=form.purchase)


def _shipped() -> Iterator[Path]:
    yield from sorted((toml_files.HERE / "prices").glob("*.toml"))


def _all_shipped() -> list[Price]:
    return [price for path in _shipped() for price in load(path).price]


@cache
def _refreshed() -> frozenset[Price]:
    return frozenset(refreshed_prices())


def _what(price: Price) -> tuple[str, str, str]:
    return price.provider, price.accelerator, price.kind


def _newest(rows: Iterable[Price]) -> dict[tuple[str, str, str], str]:
    """The newest day of each provider's prices, by kind and accelerator."""
    newest: dict[tuple[str, str, str], str] = {}
    for price in rows:
        newest[_what(price)] = max(price.as_of, newest.get(_what(price), ""))
    return newest


def _priced(price: Price, where: RowName) -> Price:
    """Check a row, and set its price in its currency and, if that is the dollar, in dollars."""
    if price.kind not in KINDS:
        toml_files.one_of(price.kind, KINDS, Message("{where}: kind", where=where()))
    if not _CURRENCY.fullmatch(price.currency):
        raise InvalidInput(
            "{where}: currency must be three capital letters such as USD or CNY. Got {currency}.",
            where=where(),
            currency=shown(price.currency),
        )
    _check_term(price, where)
    _check_row(price, where)
    _check_sizes(price, where)
    if price.currency != DOLLARS:
        if price.usd_per_hour is not None:
            raise InvalidInput(
                "{where}: a price in {currency} is written as price_per_hour, not usd_per_hour.",
                where=where(),
                currency=price.currency,
            )
        toml_files.within(price.price_per_hour, "usd", f"{where()}: price_per_hour")
        return price
    dollars = price.price_per_hour if price.usd_per_hour is None else price.usd_per_hour
    if not 0 < dollars <= toml_files.LIMITS["usd"]:
        toml_files.within(dollars, "usd", f"{where()}: usd_per_hour")
    if price.price_per_hour not in (0.0, dollars):
        raise InvalidInput(
            "{where}: usd_per_hour {dollars:g} and price_per_hour {price_per_hour:g} differ: write one.",
            where=where(),
            dollars=dollars,
            price_per_hour=price.price_per_hour,
        )
    return replace(price, usd_per_hour=dollars, price_per_hour=dollars)


def _check_term(price: Price, where: RowName) -> None:
    if price.kind != "reserved" and price.term_months is not None:
        raise InvalidInput(
            "{where}: term_months belongs to kind reserved. Got kind {kind}.", where=where(), kind=shown(price.kind)
        )
    if price.kind == "reserved" and price.term_months is None and not price.note.strip():
        raise InvalidInput(
            "{where}: a reserved price needs term_months, or a note that says why the term is unknown.",
            where=where(),
        )
    if price.term_months is not None and not 1 <= price.term_months <= MAX_TERM_MONTHS:
        raise InvalidInput(
            "{where}: term_months must be from 1 to {longest_term}. Got {term_months}.",
            where=where(),
            longest_term=MAX_TERM_MONTHS,
            term_months=shown(price.term_months),
        )


def _check_sizes(price: Price, where: RowName) -> None:
    if not price.sizes:
        return
    if price.accelerators != 1:
        raise InvalidInput(
            "{where}: sizes belong to a price of 1 accelerator. Got accelerators {accelerators}.",
            where=where(),
            accelerators=price.accelerators,
        )
    if price.sizes[0] < 1 or list(price.sizes) != sorted(set(price.sizes)):
        raise InvalidInput(
            "{where}: sizes must be whole numbers from 1, the smallest first. Got {sizes}.",
            where=where(),
            sizes=list(price.sizes),
        )
    if not price.sizes_source.strip():
        raise InvalidInput("{where}: sizes need sizes_source: where they are listed.", where=where())


def _check_purchase(purchase: Purchase, where: RowName) -> None:
    toml_files.within(purchase.usd, "usd", f"{where()}: usd")
    toml_files.within(purchase.power_watts, "watts", f"{where()}: power_watts")
    _check_row(purchase, where)


def _check_row(row: Price | Purchase, where: RowName) -> None:
    if row.accelerators < 1:
        raise InvalidInput(
            "{where}: accelerators must be at least 1. Got {accelerators}.",
            where=where(),
            accelerators=shown(row.accelerators),
        )
    if not row.source.strip():
        raise InvalidInput("{where}: source is empty.", where=where())
    if not toml_files.is_calendar_day(row.as_of):
        toml_files.calendar_day(row.as_of, f"{where()}: as_of")
