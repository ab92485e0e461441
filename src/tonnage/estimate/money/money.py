"""What a run costs and draws: rent of whole machines, power, energy, carbon. Every default says where it comes from."""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tonnage.catalogue.offers import (
    Rates,
    cheapest,
    compared,
    in_usd,
    of_named_instance,
    of_named_provider,
    offers,
    rate,
)
from tonnage.catalogue.prices import DOLLARS, Price, is_stale, staleness
from tonnage.formulas import cost as c
from tonnage.formulas import energy as e
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.formula import Basis, Number, is_any
from tonnage.kernel.message import Message, joined, option_name
from tonnage.kernel.term import Term
from tonnage.spec import Cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

# Assumptions that hold until the user says otherwise.
POWER_SHARE, POWER_SOURCE = 8.4 / 10.2, "Latif2024, abstract: 8.4 kW at most of a node rated at 10.2 kW, in training"
BUILDING = 1.54
BUILDING_SOURCE = "Uptime Institute, Global Data Center Survey 2025: mean PUE 1.54; new large halls reach 1.1 to 1.3"


class RunCost(Struct, frozen=True, kw_only=True):
    """`cost` in US dollars, `per_accelerator_hour` too, of `machines` machines at `price`; `warnings` in whole
    sentences.
    """

    cost: Term
    machines: Term
    per_accelerator_hour: Term
    price: Price
    warnings: tuple[str, ...] = ()


class RunEnergy(Struct, frozen=True, kw_only=True):
    """`power` of the machines in watts, `energy` of the building in joules; `assumed`: name of an input -> where its
    default comes from.
    """

    power: Term
    energy: Term
    assumed: dict[str, str]
    warnings: tuple[str, ...] = ()


# ---- money ----


class Choice(Struct, frozen=True, kw_only=True):
    """A price for a cluster, and what it was chosen from: `among` so many, of machines as large as the cluster's nodes
    if `whole`;
    `part`: the cluster is a part of a node; `named`: it is that of the instance by whose name the machine was asked;
    `of_provider`: it is of the provider whose instance was named, which has no price by that name."""

    price: Price
    among: int
    whole: bool
    part: bool = False
    named: bool = False
    of_provider: bool = False

    @property
    def why(self) -> str:
        """Which of how many prices this is, in words."""
        one = self.price
        if one.index:
            which = (
                Message("the cheapest of {among} {kind} indexs known", among=self.among, kind=one.kind)
                if self.among > 1
                else Message("the only {kind} index known", kind=one.kind)
            )
        else:
            which = (
                Message("the cheapest of {among} {kind} offers known", among=self.among, kind=one.kind)
                if self.among > 1
                else Message("the only {kind} offer known", kind=one.kind)
            )
        if self.named:
            which = Message("the {kind} price of {instance}, as named", kind=one.kind, instance=one.instance)
        elif self.of_provider:
            which = Message("{which} of {provider}, whose machine it is", which=which, provider=one.provider)
        elif one.index:
            which = Message("{which}: what others paid, and nobody's offer", which=which)
        elif self.whole:
            which = (
                Message("{which} of machines with as many accelerators as are used", which=which)
                if self.part
                else Message("{which} of machines with as many accelerators as a node", which=which)
            )
        elif one.accelerators == 1:
            which = Message("{which} priced per accelerator: no offer has a whole node", which=which)
        else:
            which = Message(
                "{which} of smaller machines: none of those as large as a node could be compared", which=which
            )
        unit_price = Message(
            "{price_per_hour:.4g} {currency} an accelerator and hour",
            price_per_hour=one.price_per_hour / one.accelerators,
            currency=one.currency,
        )
        return joined(
            "; ", (joined(", ", (which, unit_price)), Message("{source} ({as_of})", source=one.source, as_of=one.as_of))
        )


def best_price(
    cluster: Cluster,
    *,
    provider: str = "",
    kind: str = "on-demand",
    region: str = "",
    term_months: int | None = None,
    currency: str = "",
    rates: Rates | None = None,
) -> Choice:
    """The cheapest offer for this cluster: of machines that hold as many accelerators as its nodes, where there are
    such, else of smaller. Of the first, all that is rented is compared: one accelerator of eight is dear that is only
    rented with the other seven. A price by the accelerator stands for the machines that are sold at it, and for no
    other. An index is no offer, and is taken where there is none.

    MissingDatum where no price is known, or none in a currency that has a rate.
    """
    chip = cluster.accelerator.name
    candidates = offers(chip, provider=provider, kind=kind, region=region, currency=currency, term_months=term_months)
    if not candidates:
        criteria = ", ".join(
            word
            for word in (
                kind,
                provider,
                region,
                Message("{term_months} months", term_months=term_months) if term_months else "",
                currency,
            )
            if word
        )
        raise MissingDatum(
            "no price of {chip} is known ({asked}). `tonnage prices {chip}` lists those that are; write "
            "yours in <config directory>/prices/, or give it.",
            chip=chip,
            asked=criteria,
        )
    if own := of_named_instance(cluster, candidates, rates):
        return Choice(price=cheapest(own, rates), among=len(own), whole=True, named=True)
    if theirs := of_named_provider(cluster, candidates, rates):
        return replace(best_of(cluster, theirs, rates), of_provider=True)
    return best_of(cluster, candidates, rates)


def best_of(cluster: Cluster, candidates: "Sequence[Price]", rates: Rates | None = None) -> Choice:
    """The same among offers for its accelerator that were found already: a search asks for many clusters of one
    kind.
    """

    def hour(machine: Price) -> float:
        return float(in_usd(machine, rates) * c.machines_billed(n=cluster.size, n_node=machine.accelerators))

    def large(price: Price) -> list[Price]:
        return [each for each in price.machines if each.accelerators >= cluster.accelerators_per_node]

    payable = [
        price
        for price in candidates
        if not price.index and (price.currency == DOLLARS or price.currency in (rates or {})) and large(price)
    ]
    if not payable:
        best = cheapest(candidates, rates)
        return Choice(price=min(best.machines, key=hour), among=len(compared(candidates, rates)), whole=False)
    among = compared(payable, rates)
    best = min((each for price in among for each in large(price)), key=hour)
    return Choice(price=best, among=len(among), whole=True, part=cluster.is_part_of_node)


def usd_per_accelerator(cluster: Cluster, price: Price, rates: Rates | None = None) -> float:
    """What each accelerator that is used costs an hour, with those that are rented beside it."""
    paid = c.machines_billed(n=cluster.size, n_node=price.accelerators) * price.accelerators
    return float(hourly(price, rates).value / price.accelerators * (paid / cluster.size))


def run_cost(
    num_accelerators: Number, seconds: Number, price: Price, *, rates: Rates | None = None, today: "date | None" = None
) -> RunCost:
    """Rent of `num_accelerators` for `seconds` at this price: machines are paid whole.

    num_accelerators [accelerators] and seconds may be arrays with one entry per plan. MissingDatum for a currency
    without a rate.
    """
    _positive("num_accelerators", num_accelerators)
    _not_negative("seconds", seconds)
    machines = Term.of("machines", c.machines_billed, n=num_accelerators, n_node=price.accelerators)
    hour = hourly(price, rates)
    cost = Term.of("rent", c.rent_usd, source=hour.source, nodes=machines.value, tau=seconds, USD_hour=hour.value)
    machine_hours = Term.of(
        "an hour of an accelerator",
        c.accelerator_hour_usd,
        source=hour.source,
        USD_hour=hour.value,
        n_node=price.accelerators,
    )
    return RunCost(
        cost=cost,
        machines=machines,
        per_accelerator_hour=machine_hours,
        price=price,
        warnings=tuple(_price_warnings(price, num_accelerators, today)),
    )


def given_cost(num_accelerators: Number, seconds: Number, usd_per_hour: float) -> Term:
    """Rent at a price that the user gave [USD per accelerator-hour]; no machine is paid whole that is used in part."""
    _positive("price_per_accelerator_hour", usd_per_hour)
    return Term.of("rent", c.rent_usd, source="given", nodes=num_accelerators, tau=seconds, USD_hour=usd_per_hour)


def hourly(price: Price, rates: Rates | None = None) -> Term:
    """An hour of one machine in US dollars; MissingDatum for a currency without a rate."""
    fx = rate(price.currency, rates)
    return Term.of("an hour of a machine", c.in_dollars, source=_source(price, fx), amount=price.price_per_hour, fx=fx)


def _source(price: Price, fx: float = 1.0) -> str:
    citation = f"{price.provider} {price.instance}, {price.region}, {price.kind}: {price.source} ({price.as_of})"
    if price.sizes_source and price.accelerators > 1:
        citation += Message(
            "; machines of {accelerators} at the price of an accelerator: {sizes_source}",
            accelerators=price.accelerators,
            sizes_source=price.sizes_source,
        )
    return (
        citation
        if price.currency == DOLLARS
        else Message(
            "{said}; the rate of {fx:g} {currency} for 1 USD was given", said=citation, fx=fx, currency=price.currency
        )
    )


def _price_warnings(price: Price, num_accelerators: Number, today: "date | None") -> list[str]:
    warnings = [staleness(price, today)] if is_stale(price, today) else []
    if price.kind == "spot":
        warnings.append("spot machines can be taken back at any time: lost work and waiting are not in this cost.")
    if price.kind == "reserved":
        term = (
            Message("{term_months} months", term_months=price.term_months)
            if price.term_months
            else "a term that the provider does not publish"
        )
        warnings.append(Message("a reserved price is paid for {term}, used or not.", term=term))
    if price.accelerators == 1 and is_any(num_accelerators > 1):
        warnings.append(
            Message(
                "{provider} prices {instance} per accelerator: check that those of a node share its fast links.",
                provider=price.provider,
                instance=price.instance,
            )
        )
    elif price.sizes_source and is_any(num_accelerators > price.accelerators):
        warnings.append(
            Message(
                "{provider} prices {instance} per accelerator: check that its machines are connected by a fast "
                "network.",
                provider=price.provider,
                instance=price.instance,
            )
        )
    if is_any(num_accelerators % price.accelerators > 0):
        paid = c.machines_billed(n=num_accelerators, n_node=price.accelerators) * price.accelerators
        counted = (
            ""
            if hasattr(num_accelerators, "shape")
            else Message(
                ": {paid:,.0f} are paid for {num_accelerators:,.0f} that are used",
                paid=paid,
                num_accelerators=num_accelerators,
            )
        )
        warnings.append(
            Message(
                "{provider} {instance} is rented as a whole machine of {accelerators} accelerators{counted}.",
                provider=price.provider,
                instance=price.instance,
                accelerators=price.accelerators,
                counted=counted,
            )
        )
    if price.note:
        offer = f"{price.provider} {price.instance}"
        warnings.append(Message("{offer}: {note}.", offer=offer, note=price.note))
    return warnings


# ---- power, energy, carbon ----


def run_energy(
    cluster: Cluster, seconds: Number, *, power_share: Number | None = None, pue: Number | None = None
) -> RunEnergy:
    """Power of the cluster and the energy that its building takes up in `seconds`.

    power_share [0 to 1]: of the rated power that is drawn; pue [at least 1]: power of the building for a watt of the
    machines. Where the catalogue knows the node's power, nodes are counted, of one that is used in part the part; else
    accelerators alone. MissingDatum where neither is known.
    """
    _not_negative("seconds", seconds)
    assumed = {}
    if power_share is None:
        power_share, assumed["power_share"] = POWER_SHARE, POWER_SOURCE
    if pue is None:
        pue, assumed["pue"] = BUILDING, BUILDING_SOURCE
    _between("power_share", power_share, 0, 1)
    _between("pue", pue, 1, 10)
    power, warnings = _power(cluster, power_share)
    basis: Basis = "rule" if assumed else "analytic"
    energy = Term.of(
        "energy", e.energy_joules, basis=basis, source="; ".join(assumed.values()), pw=power.value, tau=seconds, pue=pue
    )
    return RunEnergy(power=power, energy=energy, assumed=assumed, warnings=warnings)


def _power(cluster: Cluster, share: Number) -> tuple[Term, tuple[str, ...]]:
    node, chip = cluster.node, cluster.accelerator
    if node is not None and node.power_watts:
        notes: tuple[str, ...] = ()
        machines: Number = cluster.num_nodes
        if cluster.is_part_of_node:
            machines = e.machines_in_part(n=cluster.size, n_node=node.accelerators)
            part = Message(
                "{accelerators_per_node} of the {accelerators} accelerators of {node}",
                accelerators_per_node=cluster.accelerators_per_node,
                accelerators=node.accelerators,
                node=node.name,
            )
            notes = (
                Message("energy is that of {part}: the power of hosts, fans and network is shared evenly.", part=part),
            )
        elif cluster.accelerators_per_node > node.accelerators:
            machines = -(-cluster.size // node.accelerators)
        source = _fact(node.sources.get("power_watts"), node.name)
        return Term.of("power", e.machines_power, source=source, nodes=machines, pw=node.power_watts, u=share), notes
    if not chip.tdp_watts:
        raise MissingDatum(
            "no source says what {chip} draws: give its power as a node of your own with power_watts.",
            chip=chip.name,
        )
    alone = Message(
        "{chip} is counted by its own power ({tdp_watts:g} W): hosts, fans and network come on top, and no "
        "source says how much.",
        chip=chip.name,
        tdp_watts=chip.tdp_watts,
    )
    return Term.of(
        "power",
        e.accelerators_power,
        source=_fact(chip.fact("tdp_watts"), chip.name),
        n=cluster.size,
        pw=chip.tdp_watts,
        u=share,
    ), (alone,)


def _fact(fact: object, name: str) -> str:
    source, day = getattr(fact, "source", ""), getattr(fact, "as_of", "")
    return Message("{name}: {source} ({day})", name=name, source=source, day=day) if source else name


def run_carbon(energy: Term, grid: "str | float") -> Term:
    """Emissions of this energy in grams of CO2 equivalent, on a grid of the catalogue or at a figure in gCO2e per kWh.

    MissingDatum for a grid that no source describes.
    """
    if isinstance(grid, str):
        from tonnage.catalogue.grids import grid as grid_named

        known = grid_named(grid)
        source = Message(
            "{name}, {year}: {source} ({as_of})",
            name=known.name,
            year=known.year,
            source=known.source,
            as_of=known.as_of,
        )
        return Term.of("carbon", e.carbon_grams, source=source, en=energy.value, gco2=known.grams_co2e_per_kwh)
    _between("grid", grid, 0, 5000)
    return Term.of("carbon", e.carbon_grams, en=energy.value, gco2=grid)


# ---- what may be given ----


def _positive(name: str, value: Number) -> None:
    if not _all(value > 0):
        raise InvalidInput("{name} must be above 0. Got {value}.", name=option_name(name), value=shown(value))


def _not_negative(name: str, value: Number) -> None:
    if not _all((value >= 0) & (value < float("inf"))):
        raise InvalidInput(
            "{name} must be a finite number, 0 or more. Got {value}.", name=option_name(name), value=shown(value)
        )


def _between(name: str, value: Number, low: float, high: float) -> None:
    if not _all((value >= low) & (value <= high)):
        raise InvalidInput(
            "{name} must be from {low:g} to {high:g}. Got {value}.",
            name=option_name(name),
            low=low,
            high=high,
            value=shown(value),
        )


def _all(truth: Number) -> bool:
    return bool(truth.all()) if hasattr(truth, "all") else bool(truth)
