"""What a training run costs, draws and stores: from its seconds to a bill. The catalogue's figures hold until the
user gives others.
"""

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tonnage.catalogue.offers import Rates, parse_rates, provider_named, region_named
from tonnage.catalogue.prices import KINDS, Price
from tonnage.documents.run import OwnershipDocument, PlaceDocument
from tonnage.documents.term import terms_of
from tonnage.estimate.inputs import Question
from tonnage.estimate.money import money
from tonnage.formulas.cost import machines_billed
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.message import Message, joined
from tonnage.kernel.registry import unknown
from tonnage.kernel.term import Term
from tonnage.kernel.units import HOUR, human
from tonnage.question.subjects.money import NEEDED, OF_OWNING, BillOptions
from tonnage.spec import Cluster

if TYPE_CHECKING:
    from tonnage.estimate.money.ownership import Ownership

# a device -> seconds of the same work there, or why nobody can say them
EdgeTime = Callable[[str], tuple[float | None, str]]


class Bill(Struct, frozen=True, kw_only=True):
    """`of`: what is billed, a step or the run. `cost` None where no price is known, `energy` where no source says
    what is drawn.
    """

    of: str
    cost: Term | None = None
    energy: Term | None = None
    carbon: Term | None = None
    ownership: OwnershipDocument[Term] | None = None

    @property
    def all(self) -> tuple[Term, ...]:
        """Every breakdown, to be opened."""
        return tuple(terms_of((self.cost, self.energy, self.carbon, self.ownership)))


def bill(
    cluster: Cluster,
    seconds: Term,
    of: str,
    options: BillOptions,
    question: Question,
    *,
    price: float | None = None,
    today: date | None = None,
    edge_time: EdgeTime | None = None,
    spare: int = 0,
) -> Bill:
    """The bill of `seconds` on this cluster. `price`: USD per accelerator-hour, where the user gave one;
    `edge_time`: of another device; `spare`: accelerators that are paid for beside those of the cluster, and draw
    nothing that is counted.
    """
    if options.price_kind is not None and options.price_kind not in KINDS:
        raise unknown("price_kind", options.price_kind, KINDS)
    figures = {name: getattr(options, name) for name in (*NEEDED, *OF_OWNING, "pue", "power_share")}
    if any(figure is not None for figure in figures.values()):
        from tonnage.estimate.money.ownership import check

        check(**figures)
    provider_named(options.provider or "")  # a price that is given asks for no offer
    region_named(options.region or "")
    rates = parse_rates(options.exchange_rate, "exchange_rate") if options.exchange_rate else None
    offer = None if price is not None else _offer(cluster, options, rates, question)
    cost = _cost(cluster.size + spare, seconds, offer, rates, price, of, question, today)
    energy = _energy(cluster, seconds, of, options, question)
    carbon = None
    if options.grid is not None:
        if energy is None:
            raise MissingDatum(
                "carbon needs the power of {accelerator}, which no source gives.",
                accelerator=cluster.accelerator.name,
            )
        carbon = money.run_carbon(energy, grid_value(options.grid)).named(Message("carbon of {of}", of=of))
    own = _own(cluster, seconds, options, offer, rates, price, question, today, edge_time)
    return Bill(of=of, cost=cost, energy=energy, carbon=carbon, ownership=own)


def usd_per_hour(cluster: Cluster, options: BillOptions) -> float | None:
    """What the offer that `bill` takes costs for an accelerator that is used and hour; None where no price is known."""
    rates = parse_rates(options.exchange_rate, "exchange_rate") if options.exchange_rate else None
    try:
        price = _best(cluster, options, rates).price
    except MissingDatum:
        return None
    return money.usd_per_accelerator(cluster, price, rates)


def rented(cluster: Cluster, options: BillOptions) -> int | None:
    """Accelerators that are paid for where the offer that `bill` takes is rented: of whole machines. None where no
    price is known.
    """
    rates = parse_rates(options.exchange_rate, "exchange_rate") if options.exchange_rate else None
    try:
        per_machine = _best(cluster, options, rates).price.accelerators
    except MissingDatum:
        return None
    return int(machines_billed.evaluate(n=cluster.size, n_node=per_machine)) * per_machine


def rent(options: BillOptions, price: float | None) -> Callable[[Cluster], float | None]:
    """What clusters cost an hour, each asked for once; None where no price is known, or where the bill will refuse what
    was said about it.
    `price`: USD per accelerator-hour, where the user gave one."""
    known: dict[str, float | None] = {}

    def of(cluster: Cluster) -> float | None:
        if cluster.name not in known:
            try:
                hourly_price = usd_per_hour(cluster, options) if price is None else price
            except TonnageError:
                hourly_price = None
            known[cluster.name] = None if hourly_price is None else hourly_price * cluster.size
        return known[cluster.name]

    return of


class Rent(Struct, frozen=True):
    """USD that a cluster costs an hour. `provider`: whose offer it is, where that is not the provider of the machine
    that was asked about.
    """

    usd: float
    provider: str = ""


def rent_of_moves(base: Cluster, options: BillOptions, price: float | None) -> Callable[[Cluster], Rent | None]:
    """What other machines cost beside `base`: at its provider, where that lets such machines, so that a move is not
    compared with another market; else, also where it lets only larger ones, at the cheapest offer, whose provider is
    named. `price`: USD per accelerator-hour, where the user gave one.
    """
    cheapest = rent(options, price)
    known: dict[str, Rent | None] = {}

    def of(cluster: Cluster) -> Rent | None:
        if cluster.name not in known:
            known[cluster.name] = _rent_beside(base, cluster, options) if price is None else None
        beside = known[cluster.name]
        usd = cheapest(cluster) if beside is None else None
        return beside or (None if usd is None else Rent(usd))

    return of


def _rent_beside(base: Cluster, cluster: Cluster, options: BillOptions) -> Rent | None:
    """The rent of a cluster at the provider of `base`, or with the name of another; None where a price is not known."""
    try:
        rates = parse_rates(options.exchange_rate, "exchange_rate") if options.exchange_rate else None
        best = _best(cluster, options, rates)
        home = (best if cluster is base else _best(base, options, rates)).price.provider
    except TonnageError:
        return None
    try:
        own = _best(cluster, replace(options, provider=home), rates)
    except TonnageError:
        own = None
    pays_for_more = own is not None and own.price.accelerators > cluster.size  # of a machine that is let as a whole
    if own is not None and own.whole >= best.whole and not pays_for_more:
        return Rent(money.usd_per_accelerator(cluster, own.price, rates) * cluster.size)
    provider = "" if best.price.provider == home else best.price.provider
    return Rent(money.usd_per_accelerator(cluster, best.price, rates) * cluster.size, provider)


def _best(cluster: Cluster, options: BillOptions, rates: Rates | None) -> money.Choice:
    """The price that the options leave as the best."""
    kind = options.price_kind or "on-demand"
    return money.best_price(
        cluster, provider=options.provider or "", kind=kind, region=options.region or "", rates=rates
    )


def grid_value(grid_option: float | str) -> str | float:
    """The name of a grid, or gCO2e per kWh."""
    try:
        return float(grid_option)
    except ValueError:
        return grid_option


def _offer(cluster: Cluster, options: BillOptions, rates: Rates | None, question: Question) -> Price | None:
    """The cheapest offer; None, and a note, where there is none and nobody asked for one."""
    try:
        best = _best(cluster, options, rates)
    except MissingDatum as error:
        if any((options.provider, options.price_kind, options.region)):
            raise
        question.warn(str(error))
        return None
    price = best.price
    question.put("price", joined(", ", (f"{price.provider} {price.instance}", price.region)), "catalogue", best.why)
    return price


def _cost(
    size: int,
    seconds: Term,
    offer: Price | None,
    rates: Rates | None,
    price: float | None,
    of: str,
    question: Question,
    today: date | None,
) -> Term | None:
    if price is not None:
        return money.given_cost(size, seconds.value, price).named(Message("cost of {of}", of=of))
    if offer is None:
        return None
    run_cost = money.run_cost(size, seconds.value, offer, rates=rates, today=today)
    for warning in run_cost.warnings:
        question.warn(warning)
    return run_cost.cost.named(Message("cost of {of}", of=of))


def _energy(cluster: Cluster, seconds: Term, of: str, options: BillOptions, question: Question) -> Term | None:
    try:
        run_energy = money.run_energy(cluster, seconds.value, power_share=options.power_share, pue=options.pue)
    except MissingDatum as error:
        question.warn(str(error))
        return None
    defaults = {"power_share": money.POWER_SHARE, "pue": money.BUILDING}
    for name in ("power_share", "pue"):
        question.take(
            name, getattr(options, name), round(defaults[name], 3), "default", run_energy.assumed.get(name, "")
        )
    for warning in run_energy.warnings:
        question.warn(warning)
    return run_energy.energy.named(Message("energy of {of}", of=of))


def _own(
    cluster: Cluster,
    seconds: Term,
    options: BillOptions,
    offer: Price | None,
    rates: Rates | None,
    price: float | None,
    question: Question,
    today: date | None,
    edge_time: EdgeTime | None,
) -> OwnershipDocument[Term] | None:
    """Buying the cluster's machines against renting them, where the inputs without a source were given, and what
    `seconds` cost in each place.
    """
    if not options.compares:
        return None
    from tonnage.estimate.money import ownership

    if price is not None or offer is None:
        raise InvalidInput(
            Message(
                "buying is compared with an offer of the catalogue: leave out "
                "{@price_per_accelerator_hour}, or write yours in <config directory>/prices/."
            )
        )
    chip, size = cluster.accelerator.name, cluster.accelerators_per_node
    names = (*NEEDED, "pue", "power_share", "depreciation_years", "colocation_usd_per_kw_month")
    inputs: dict[str, float | None] = {name: getattr(options, name) for name in names}
    watts = options.machine_watts
    if watts is None and options.machine_usd is not None and cluster.node is not None:
        watts = cluster.node.power_watts
    machine = ownership.machine_of(chip, size, usd=options.machine_usd, watts=watts, **inputs)
    if options.machine_usd is None and (sold := ownership.purchase_of(chip, size)).note:
        question.warn(
            Message(
                "{sold} is bought for {usd} ({note}): {@machine_usd} and {@machine_watts} say what yours "
                "costs and draws.",
                sold=sold.name,
                usd=human(sold.usd, "USD"),
                note=sold.note,
            )
        )
    machine = replace(machine, machines=cluster.num_nodes)
    if options.used_share is not None:
        machine = replace(machine, used_share=options.used_share)
    comparison = ownership.buy_or_rent(machine, offer, rates=rates, today=today)
    for name, why in comparison.assumed.items():
        if name not in question.entries:  # the energy may have said it
            question.put(name, ownership.default(name), "default", why)
    hours = seconds.value / HOUR
    places = [
        ownership.in_cloud(offer, cluster.size, hours, rates=rates),
        ownership.on_own_servers(machine, hours),
    ]
    if options.edge is not None and edge_time is not None:
        places.append(_edge(options.edge, edge_time, machine))
    return OwnershipDocument(
        purchase=comparison.purchase,
        own_month=comparison.own_month,
        rent_month=comparison.rent_month,
        own_hour=comparison.own_hour,
        break_even=comparison.break_even,
        break_even_month=comparison.month,
        worn_out=comparison.worn_out,
        places=places,
    )


def _edge(name: str, edge_time: EdgeTime, own: "Ownership") -> PlaceDocument[Term]:
    """The same work on one device that is bought, with the electricity and the years of the own servers."""
    from tonnage.estimate.money import ownership

    device = ownership.device_of(name)
    seconds, why = edge_time(name)
    if seconds is None:
        return ownership.not_at_the_edge(device, why)
    own = ownership.complete(own)
    years, power = float(own.depreciation_years or 0), float(own.electricity_usd_per_kwh or 0)
    return ownership.at_the_edge(device, seconds / HOUR, years=years, electricity_usd_per_kwh=power)
