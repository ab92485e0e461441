"""Dated prices: catalogue/prices/*.toml -> Price (rented, by the hour) and Purchase (bought). The user's own come first."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.catalogue import _checks, _files
from tonnage.errors import InvalidInput, shown

KINDS = ("on-demand", "spot")


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one machine costs an hour: list price in US dollars, before tax and discounts, without storage and traffic."""

    provider: str
    instance: str
    accelerator: str
    accelerators: int
    region: str
    kind: str
    usd_per_hour: float
    source: str
    as_of: str

    @property
    def usd_per_accelerator_hour(self) -> float:
        return self.usd_per_hour / self.accelerators


class Purchase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a machine or a card costs, in US dollars before tax, and the most power that it draws, in watts."""

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
def prices() -> tuple[Price, ...]:
    """All hourly prices."""
    return tuple(price for path in _paths() for price in load(path).price)


@cache
def purchases() -> tuple[Purchase, ...]:
    """All purchase prices."""
    return tuple(purchase for path in _paths() for purchase in load(path).purchase)


def load(path: Path) -> PriceFile:
    """Read one file, strictly."""
    form = _files.read(path, PriceFile)
    for number, price in enumerate(form.price, 1):
        _check_price(price, f"{path}: price {number} ({price.instance})")
    for number, purchase in enumerate(form.purchase, 1):
        _check_purchase(purchase, f"{path}: purchase {number} ({purchase.name})")
    return form


def _paths() -> Iterator[Path]:
    yield from _files.user_files("prices")
    yield from sorted((_files.HERE / "prices").glob("*.toml"))


def _check_price(price: Price, where: str) -> None:
    _checks.one_of(price.kind, KINDS, f"{where}: kind")
    _checks.within(price.usd_per_hour, "usd", f"{where}: usd_per_hour")
    _check_row(price, where)


def _check_purchase(purchase: Purchase, where: str) -> None:
    _checks.within(purchase.usd, "usd", f"{where}: usd")
    _checks.within(purchase.power_watts, "watts", f"{where}: power_watts")
    _check_row(purchase, where)


def _check_row(row: Price | Purchase, where: str) -> None:
    if row.accelerators < 1:
        raise InvalidInput(f"{where}: accelerators must be at least 1. Got {shown(row.accelerators)}.")
    if not row.source.strip():
        raise InvalidInput(f"{where}: source is empty.")
    _checks.date(row.as_of, f"{where}: as_of")
