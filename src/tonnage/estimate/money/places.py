"""Where to run (rule D11): cloud, own servers and a device at the edge, each with what the same hours cost there."""

from tonnage.catalogue.offers import Rates
from tonnage.catalogue.prices import Price, Purchase
from tonnage.documents.run import PlaceDocument
from tonnage.estimate.money.money import hourly
from tonnage.estimate.money.ownership import Ownership, complete, operation
from tonnage.formulas import cost as c
from tonnage.formulas import energy as e
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import HOUR

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
