"""Whose prices a comparison has: one provider's for all machines where one has them all, so that rows differ by
their machines and not by the market.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.catalogue.offers import Rates, offers, parse_rates
from tonnage.catalogue.prices import Price
from tonnage.estimate.money.money import best_of, usd_per_accelerator
from tonnage.formulas.cost import machines_billed
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.kernel.message import Message
from tonnage.search.compare.axes import Axis
from tonnage.spec import Cluster

SAID = ("provider", "price_per_accelerator_hour")  # with one of these the user has said whose price it is
# what an accelerator costs in the dearest cluster over the cheapest: beyond, two products, or accelerators that are
# paid for and not used
ONE_PRICE = 1.25
OF_OFFERS = ("price_kind", "region", "exchange_rate")
Machines = dict[str, dict[str, Cluster]]  # clusters by the name of their accelerator, each once by its own name


class Providers:
    """The providers whose prices the cells of a comparison use."""

    def __init__(self, axes: Sequence[Axis]):
        self.is_said = any(axis.name in SAID for axis in axes)
        self.chosen: dict[tuple[Any, ...], str] = {}
        self.is_dearer = False  # some machine costs less at another provider

    def choose(self, cells: Iterable[tuple[Cluster, Mapping[str, Any]]]) -> None:
        """Choose the providers of these machines, each with the options of its cell: one for all cells that ask for
        the same kind of offer.
        """
        machines_by_options: dict[tuple[Any, ...], Machines] = {}
        for cluster, options in cells:
            machines = machines_by_options.setdefault(tuple(options.get(name) for name in OF_OFFERS), {})
            machines.setdefault(cluster.accelerator.name, {})[cluster.name] = cluster
        for key, machines in machines_by_options.items() if not self.is_said else ():
            known = [market for name in machines if (market := _market(name, list(machines[name].values()), *key))]
            one = _provider_of_all(known)
            for market in known:
                name = self.chosen[market.accelerator, *key] = one or _provider(market)
                self.is_dearer |= any(own.usd > best.usd for own, best in market.pairs(name) if own)

    def of(self, accelerator: str, options: Mapping[str, Any]) -> dict[str, str]:
        """The option that says whose price a cell has; nothing where the user said it, or where no price is known."""
        name = self.chosen.get((accelerator, *(options.get(name) for name in OF_OFFERS)))
        return {"provider": name} if name else {}

    @property
    def names(self) -> tuple[str, ...]:
        """The providers, each once; none where every machine has its cheapest offer, as a single answer has it."""
        providers = tuple(dict.fromkeys(self.chosen.values()))
        return providers if len(providers) > 1 or self.is_dearer else ()

    @property
    def note(self) -> str:
        """The note on whose prices the cells have, where they are not each machine's cheapest or are of several
        providers.
        """
        if not self.names:
            return ""
        if len(self.names) == 1:
            return Message(
                "prices are of one provider that offers all these machines: {names}. Single machines may cost "
                "less elsewhere: `serve`, `train` and `plan` use the cheapest offer. {--provider} chooses "
                "another.",
                names=self.names[0],
            )
        accelerators_of: dict[str, dict[str, None]] = {}
        for (accelerator, *_), provider in self.chosen.items():
            accelerators_of.setdefault(provider, {})[accelerator] = None
        listing = "; ".join(f"{provider} ({', '.join(names)})" for provider, names in accelerators_of.items())
        return Message(
            "prices are of several providers, of each accelerator one: {each}. {--provider} compares one alone.",
            each=listing,
        )


class _Paid(Struct, frozen=True):
    """What a cluster costs: USD of an hour of each accelerator that is used. `whole`: on machines as large as its
    nodes; `rented`: accelerators that are paid for.
    """

    usd: float
    whole: bool
    rented: int


class _Market(Struct, frozen=True, eq=False):
    """What the clusters of one accelerator cost: by provider, one entry for each cluster, None where it cannot be
    paid; `best`: the cheapest offer of each.
    """

    accelerator: str
    paid: dict[str, list[_Paid | None]]
    best: list[_Paid | None]

    def pairs(self, name: str) -> list[tuple[_Paid | None, _Paid]]:
        """Pairs of this provider's cost and the cheapest cost, for each cluster that anybody offers."""
        return [
            (own, best)
            for own, best in zip(self.paid.get(name, [None] * len(self.best)), self.best, strict=True)
            if best
        ]

    def held(self, name: str) -> list[tuple[_Paid, _Paid]]:
        """The pairs of the clusters that this provider's machines hold as well as those of the cheapest offer."""
        return [(own, best) for own, best in self.pairs(name) if own and own.whole >= best.whole]

    def is_uneven(self, name: str) -> bool:
        """Whether an accelerator that is used costs more in one cluster than in another, by far."""
        prices = [own.usd for own, _ in self.held(name)]
        return max(prices, default=1) > ONE_PRICE * min(prices, default=1)

    def has_all(self, name: str) -> bool:
        """Whether this provider has every cluster, with no more accelerators that are paid for than others rent it
        with.
        """
        least = [
            min((one.rented for one in column if one), default=0) for column in zip(*self.paid.values(), strict=True)
        ]
        fewest = [count for count, best in zip(least, self.best, strict=True) if best]
        held = self.held(name)
        return len(held) == len(fewest) and all(
            own.rented <= count for (own, _), count in zip(held, fewest, strict=True)
        )


def _market(
    accelerator: str, clusters: Sequence[Cluster], kind: str | None, region: str | None, exchange: str | None
) -> _Market | None:
    """What the clusters of one accelerator cost; None where nobody sells it, or where no offer fits the options: the
    cell says why.
    """
    try:
        rates = parse_rates(exchange, "exchange_rate") if exchange else None
        known = offers(accelerator, kind=kind or "on-demand", region=region or "")
    except TonnageError:
        return None
    paid = {
        name: [_paid(cluster, [offer for offer in known if offer.provider == name], rates) for cluster in clusters]
        for name in sorted({offer.provider for offer in known})
    }
    able = {name: prices for name, prices in paid.items() if any(prices)}
    return _Market(accelerator, able, [_paid(cluster, known, rates) for cluster in clusters]) if able else None


def _provider_of_all(markets: Sequence[_Market]) -> str:
    """The provider that has every machine, if possible at one price for each accelerator that is used; of several
    the cheapest, by the sum of what an accelerator of each machine costs. Empty where there is none.
    """

    def score(name: str) -> tuple[bool, float, str]:
        usd = sum(own.usd for market in markets for own, _ in market.held(name))
        return any(market.is_uneven(name) for market in markets), usd, name

    able = [name for name in (markets[0].paid if markets else ()) if all(market.has_all(name) for market in markets)]
    return min(able, key=score, default="")


def _provider(market: _Market) -> str:
    """The provider whose machines hold most of the clusters, if possible at one price for each accelerator that is
    used; of those the cheapest, by the mean of what each cluster costs over its cheapest offer.
    """

    def score(name: str) -> tuple[int, bool, float, str]:
        held = market.held(name)
        over = sum(own.usd / best.usd for own, best in held) / max(len(held), 1)
        return -len(held), market.is_uneven(name), over, name

    return min(market.paid, key=score)


def _paid(cluster: Cluster, offers_made: Sequence[Price], rates: Rates | None) -> _Paid | None:
    """What a cluster costs at the best of these offers; None where none can be paid."""
    if not offers_made:
        return None
    try:
        best = best_of(cluster, offers_made, rates)
    except MissingDatum:
        return None
    rented_together = best.price.accelerators
    rented = int(machines_billed.evaluate(n=cluster.size, n_node=rented_together)) * rented_together
    return _Paid(usd_per_accelerator(cluster, best.price, rates), best.whole, rented)
