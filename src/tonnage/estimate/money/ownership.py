"""Buying against renting: what machines cost that one owns, and the month in which they cost less than rent (rule
D11).
"""

from math import ceil
from typing import TYPE_CHECKING

from msgspec import Struct

from tonnage.catalogue.offers import Rates, bought
from tonnage.catalogue.prices import Price, Purchase, is_stale, staleness
from tonnage.estimate.money.money import BUILDING, BUILDING_SOURCE, POWER_SHARE, POWER_SOURCE, hourly
from tonnage.formulas import cost as c
from tonnage.formulas import energy as e
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message, joined, listed, option_name
from tonnage.kernel.term import Term
from tonnage.kernel.units import MONTH

if TYPE_CHECKING:
    from datetime import date
from tonnage.documents.run import PlaceDocument
from tonnage.kernel.units import HOUR

DEPRECIATION, DEPRECIATION_SOURCE = 5.0, "Amazon, 10-K of 2024: part of its servers from 2025 on, for the pace of AI"
COLOCATION = 184.0
COLOCATION_SOURCE = "CBRE, North America Data Center Trends H1 2025: 250 to 500 kW, without electricity"
# What no source gives for everybody, and how to say it.
ASKED = {
    "electricity_usd_per_kwh": "price of a kilowatt-hour [USD]",
    "network_share": "switches, cables and racks, as a share of the price of the machines [0 to 5]; 0 for one machine",
    "staff_usd_per_month": "pay of those who look after all the machines [USD a month]; 0 if nobody more is hired",
}


class Ownership(Struct, frozen=True, kw_only=True):
    """What owning machines takes. None: asked for where there is no source (ASKED), else taken from the source that the
    answer names.

    machine_usd [USD] and machine_watts [W, at most] of one machine of `accelerators`; machines; depreciation_years;
    pue; power_share [0 to 1] of the rated power; electricity_usd_per_kwh; colocation_usd_per_kw_month [USD, 0 in one's
    own building]; network_share; staff_usd_per_month [USD, for all machines]; used_share [0 to 1]: of the time, in
    which renting would be paid and power is drawn: what idle machines draw has no source and is left out.
    """

    machine_usd: float
    machine_watts: float
    accelerators: int
    source: str
    machines: int = 1
    depreciation_years: float | None = None
    pue: float | None = None
    power_share: float | None = None
    electricity_usd_per_kwh: float | None = None
    colocation_usd_per_kw_month: float | None = None
    network_share: float | None = None
    staff_usd_per_month: float | None = None
    used_share: float = 1.0

    @property
    def assumed(self) -> dict[str, str]:
        """Inputs that were not given and have a default -> where that comes from."""
        return {name: source for name, (_, source) in _DEFAULTS.items() if getattr(self, name) is None}


_DEFAULTS = {
    "depreciation_years": (DEPRECIATION, DEPRECIATION_SOURCE),
    "pue": (BUILDING, BUILDING_SOURCE),
    "power_share": (POWER_SHARE, POWER_SOURCE),
    "colocation_usd_per_kw_month": (COLOCATION, COLOCATION_SOURCE),
}
_RANGES = {
    "machine_usd": (0.0, 1e9),
    "machine_watts": (0.0, 1e7),
    "accelerators": (1, 1e5),
    "machines": (1, 1e7),
    "depreciation_years": (0.1, 30),
    "pue": (1, 10),
    "power_share": (0, 1),
    "electricity_usd_per_kwh": (0, 100),
    "colocation_usd_per_kw_month": (0, 1e5),
    "network_share": (0, 5),
    "staff_usd_per_month": (0, 1e9),
    "used_share": (0, 1),
}


class Comparison(Struct, frozen=True, kw_only=True):
    """Buying against renting the same machines.

    `purchase` [USD] once; `own_month` and `rent_month` [USD a month of 730 hours]: own without the purchase; `own_hour`
    [USD]: an accelerator for an hour in use, the purchase written off; `break_even` [seconds], None where rent is not
    above what owning costs to run, and `month`, counted from 1, in which it falls. `worn_out`: the machines are written
    off before that.
    """

    purchase: Term
    own_month: Term
    rent_month: Term
    own_hour: Term
    break_even: Term | None
    month: int | None
    worn_out: bool
    assumed: dict[str, str]
    warnings: tuple[str, ...] = ()


def owned(purchase: Purchase, **inputs: float | None) -> Ownership:
    """A machine of the catalogue's purchase prices, with its power; MissingDatum where its power is unknown and not
    given.
    """
    watts = inputs.pop("machine_watts", None)
    watts = purchase.power_watts if watts is None else watts
    if watts is None:
        raise MissingDatum("no source says what {purchase} draws: give {@machine_watts}.", purchase=purchase.name)
    values: dict[str, object] = {
        "machine_usd": purchase.usd,
        "machine_watts": watts,
        "accelerators": purchase.accelerators,
        "source": Message(
            "{name}: {source} ({as_of})", name=purchase.name, source=purchase.source, as_of=purchase.as_of
        ),
        **inputs,
    }
    return Ownership(**values)  # type: ignore[arg-type]


def purchase_of(accelerator: str, accelerators: int | None = None) -> Purchase:
    """The cheapest machine for sale with this accelerator, an accelerator at a time; MissingDatum where no price is
    known.
    """
    purchases = [row for row in bought(accelerator) if accelerators in (None, row.accelerators)]
    if not purchases:
        size = Message(" with {accelerators} of it", accelerators=accelerators) if accelerators else ""
        raise MissingDatum(
            "no price of a machine of {accelerator}{size} is known: give {@machine_usd}, or write it "
            "in <config directory>/prices/.",
            accelerator=shown(accelerator),
            size=size,
        )
    return min(purchases, key=lambda row: row.usd / row.accelerators)


def device_of(accelerator: str) -> Purchase:
    """The cheapest card or computer for sale with one such accelerator; MissingDatum names those whose price is
    known.
    """
    devices = [row for row in bought(accelerator) if row.accelerators == 1]
    if not devices:
        known = listed(sorted({row.accelerator for row in bought() if row.accelerators == 1}))
        raise MissingDatum(
            "edge: no price of one {accelerator} is known; of these it is: {known}. Write others "
            "in <config directory>/prices/.",
            accelerator=shown(accelerator),
            known=known,
        )
    return min(devices, key=lambda row: row.usd)


def machine_of(chip: str, size: int, *, usd: float | None, watts: float | None, **inputs: float | None) -> Ownership:
    """A machine of `size` accelerators at the price that was given [USD], or the cheapest for sale; MissingDatum
    names what nobody knows.
    """
    if usd is None:
        return owned(purchase_of(chip, size), machine_watts=watts, **inputs)
    if watts is None:
        raise MissingDatum(
            "a machine of {size} x {chip} at a price of one's own needs its power too: give {@machine_watts}.",
            size=size,
            chip=chip,
        )
    values: dict[str, object] = {
        "machine_usd": usd,
        "machine_watts": watts,
        "accelerators": size,
        "source": Message("{size} x {chip}: given", size=size, chip=chip),
        **inputs,
    }
    return Ownership(**values)  # type: ignore[arg-type]


def operation(own: Ownership, seconds: float) -> Term:
    """What the machines cost for `seconds`, idle ones among them, without their price; MissingDatum names all inputs
    that are needed.
    """
    room = own.assumed.get("colocation_usd_per_kw_month", "given")
    own = complete(own)
    power = Term.of(
        "power", e.machines_power, source=own.source, nodes=own.machines, pw=own.machine_watts, u=own.power_share
    )
    energy = Term.of("energy", e.energy_joules, pw=power.value, tau=seconds * own.used_share, pue=own.pue)
    rated = own.machines * own.machine_watts  # room is let by the most that may be drawn, and for every hour
    return Term.sum(
        "operation",
        Term.of("electricity", c.electricity_usd, en=energy.value, USD_kwh=own.electricity_usd_per_kwh),
        Term.of(
            "colocation", c.colocation_usd, source=room, pw=rated, tau=seconds, USD_kw=own.colocation_usd_per_kw_month
        ),
        Term.of("staff", c.staff_usd, USD_staff=own.staff_usd_per_month, tau=seconds),
    )


def buy_or_rent(own: Ownership, price: Price, *, rates: Rates | None = None, today: "date | None" = None) -> Comparison:
    """Buying these machines against renting as many accelerators at this price for the time that they are used.

    MissingDatum for inputs without a source that were not given, or a currency without a rate.
    """
    assumed, own = own.assumed, complete(own)
    running = operation(own, MONTH).named("a month of operation")
    purchase = Term.of(
        "purchase",
        c.purchase_usd,
        source=own.source,
        nodes=own.machines,
        USD_buy=own.machine_usd,
        share_net=own.network_share,
    )
    hour = hourly(price, rates)
    machines = c.machines_billed(n=own.machines * own.accelerators, n_node=price.accelerators)
    rent = Term.of(
        "a month of rent",
        c.rent_usd,
        source=hour.source,
        nodes=machines,
        tau=MONTH * own.used_share,
        USD_hour=hour.value,
    )
    break_even = _break_even(purchase, rent, running)
    written_off = float(own.depreciation_years or 0) * 12
    month = ceil(break_even.value / MONTH) if break_even else None
    return Comparison(
        purchase=purchase,
        own_month=running,
        rent_month=rent,
        own_hour=_own_hour(own, purchase, running),
        break_even=break_even,
        month=month,
        worn_out=month is None or month > written_off,
        assumed=assumed,
        warnings=(staleness(price, today),) if is_stale(price, today) else (),
    )


def when_it_pays(month: int | None, *, worn_out: bool) -> str:
    """From which month on buying costs less, in words; a month after the machines' life is none."""
    if month is None:
        return "buying never costs less"
    if worn_out:
        return Message(
            "buying does not pay off within the machines' life: they are written off before month {month}, "
            "from which on it would cost less",
            month=month,
        )
    return Message("buying costs less from month {month} on", month=month)


def months_and_lines(
    purchase: Term, own_month: Term, rent_month: Term, break_even: Term | None
) -> tuple[list[float], list[float], list[float], tuple[float, float] | None]:
    """For a picture: months, USD paid until each by who buys and by who rents, and the month and USD in which the
    lines cross.
    """
    crossing = None
    last = 60.0  # five years, in which machines are written off
    if break_even is not None:
        month = break_even.value / MONTH
        crossing = (month, month * rent_month.value)
        last = max(12.0, 1.6 * month)
    months = [last * step / 24 for step in range(25)]
    bought = [purchase.value + month * own_month.value for month in months]
    return months, bought, [month * rent_month.value for month in months], crossing


def _break_even(purchase: Term, rent: Term, running: Term) -> Term | None:
    if rent.value <= running.value:
        return None
    return Term.of(
        "time until buying costs less",
        c.break_even_seconds,
        USD_buy=purchase.value,
        USD_rent=rent.value / MONTH,
        USD_run=running.value / MONTH,
    )


def _own_hour(own: Ownership, purchase: Term, running: Term) -> Term:
    """An accelerator for an hour in use: idle hours are paid by those in use."""
    if not own.used_share:
        raise InvalidInput(Message("{@used_share} must be above 0 to say what an hour in use costs. Got 0."))
    worn = Term.of(
        "purchase, written off", c.depreciation_usd, USD_buy=purchase.value, tau=MONTH, years=own.depreciation_years
    )
    hours = own.machines * own.accelerators * 730 * own.used_share
    month = Term.sum("a month", worn, running)
    return Term.of(
        "an hour of an accelerator", c.accelerator_hour_usd, source=own.source, USD_hour=month.value, n_node=hours
    )


def default(name: str) -> float:
    """What is taken for an input that was not given."""
    return _DEFAULTS[name][0]


def complete(own: Ownership) -> Ownership:
    """The inputs with their defaults; MissingDatum names those that were not given and have none."""
    from msgspec.structs import replace

    check(**{name: getattr(own, name) for name in _RANGES})
    missing = [joined(": ", (option_name(name), what)) for name, what in ASKED.items() if getattr(own, name) is None]
    if missing:
        raise MissingDatum(
            "owning machines needs what no source gives for everybody: {missing}.", missing=joined("; ", missing)
        )
    return replace(own, **{name: default for name, (default, _) in _DEFAULTS.items() if getattr(own, name) is None})


def check(**inputs: float | None) -> None:
    """Each input of an Ownership that was given must be in its range, whether or not the others are given."""
    for name, value in inputs.items():
        low, high = _RANGES[name]
        if value is not None and (isinstance(value, bool) or not low <= value <= high):
            raise InvalidInput(
                "{name} must be from {low:g} to {high:g}. Got {value}.",
                name=option_name(name),
                low=low,
                high=high,
                value=shown(value),
            )


# ---- Where to run (rule D11): cloud, own servers and a device at the edge, each with what the same hours cost there.

EDGE_POWER = "the rated power of the whole device"


def in_cloud(price: Price, num_accelerators: int, hours: float, *, rates: Rates | None = None) -> PlaceDocument[Term]:
    """Rent for these hours."""
    _hours(hours)
    hour = hourly(price, rates)
    machines = c.machines_billed(n=num_accelerators, n_node=price.accelerators)
    cost = Term.of("rent", c.rent_usd, source=hour.source, nodes=machines, tau=hours * HOUR, USD_hour=hour.value)
    return PlaceDocument(
        where="cloud",
        what=f"{machines} x {price.provider} {price.instance}, {price.kind}",
        cost=cost,
        seconds=hours * HOUR,
        first_payment=0.0,
        note="nothing is paid before or after",
    )


def on_own_servers(own: Ownership, hours: float) -> PlaceDocument[Term]:
    """The part of the purchase that these hours use up, and the operation; hours in which nobody uses the machines
    are theirs to pay.
    """
    _hours(hours)
    own = complete(own)
    if not own.used_share:
        raise InvalidInput(Message("{@used_share} must be above 0 to say what hours in use cost. Got 0."))
    seconds = hours * HOUR / own.used_share
    purchase = c.purchase_usd(nodes=own.machines, USD_buy=own.machine_usd, share_net=own.network_share)
    worn = Term.of(
        "purchase, written off",
        c.depreciation_usd,
        source=own.source,
        USD_buy=purchase,
        tau=seconds,
        years=own.depreciation_years,
    )
    note = "the rest of the purchase is paid too, used or not"
    return PlaceDocument(
        where="own servers",
        what=f"{own.machines} x {own.source.partition(':')[0]}",
        cost=Term.sum("own servers", worn, operation(own, seconds)),
        seconds=hours * HOUR,
        first_payment=purchase,
        note=note,
    )


def at_the_edge(device: Purchase, hours: float, *, years: float, electricity_usd_per_kwh: float) -> PlaceDocument[Term]:
    """One device on a desk or in the field: its price written off over `years`, and its electricity; no building,
    network or staff.
    """
    _hours(hours)
    worn = Term.of(
        "purchase, written off",
        c.depreciation_usd,
        source=f"{device.source} ({device.as_of})",
        USD_buy=device.usd,
        tau=hours * HOUR,
        years=years,
    )
    energy = e.energy_joules(pw=device.power_watts or 0.0, tau=hours * HOUR, pue=1.0)
    power = Term.of("electricity", c.electricity_usd, source=EDGE_POWER, en=energy, USD_kwh=electricity_usd_per_kwh)
    note = "small models only" if device.power_watts else "small models only; its power is unknown and left out"
    return PlaceDocument(
        where="edge",
        what=device.name,
        cost=Term.sum("edge", worn, power),
        seconds=hours * HOUR,
        first_payment=device.usd,
        note=note,
    )


def not_at_the_edge(device: Purchase, why: str) -> PlaceDocument[Term]:
    """A device that cannot do it, or whose time nobody knows."""
    return PlaceDocument(where="edge", what=device.name, first_payment=device.usd, note=why)


def _hours(hours: float) -> None:
    if not 0 < hours < float("inf"):
        raise InvalidInput("hours must be a finite number above 0. Got {hours}.", hours=shown(hours))
