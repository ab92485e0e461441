"""What an hour of a cluster costs, asked thousands of times in a search."""

from tonnage.catalogue.offers import offers, parse_rates
from tonnage.catalogue.prices import KINDS, Price
from tonnage.estimate.money import money
from tonnage.estimate.money.bill import BillOptions
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.registry import unknown
from tonnage.spec import Accelerator, Cluster


class Prices:
    """Rent of whole clusters [USD an hour], as `tonnage serve` has it. `given`: USD per accelerator-hour, where the
    user gave one.
    """

    def __init__(self, options: BillOptions, given: float | None = None):
        if options.price_kind is not None and options.price_kind not in KINDS:
            raise unknown("price_kind", options.price_kind, KINDS)
        self.options, self.given = options, given
        self.rates = parse_rates(options.exchange_rate, "exchange_rate") if options.exchange_rate else None
        self._offers: dict[str, tuple[Price, ...]] = {}
        self._known: dict[tuple[str, int, int], float | None] = {}

    def of(self, cluster: Cluster) -> float | None:
        """None where no price is known."""
        if self.given is not None:
            return self.given * cluster.size
        key = (cluster.accelerator.name, cluster.num_nodes, cluster.accelerators_per_node)
        if key not in self._known:
            self._known[key] = self._asked(cluster)
        return self._known[key]

    def knows(self, chip: Accelerator) -> bool:
        """Whether there is an offer that can be paid in dollars, or at a rate that was given."""
        return self.of(Cluster(accelerator=chip)) is not None

    def _found(self, accelerator: str) -> tuple[Price, ...]:
        if accelerator not in self._offers:
            o = self.options
            kind = o.price_kind or "on-demand"
            self._offers[accelerator] = offers(accelerator, provider=o.provider or "", kind=kind, region=o.region or "")
        return self._offers[accelerator]

    def _asked(self, cluster: Cluster) -> float | None:
        found = self._found(cluster.accelerator.name)
        if not found:
            return None
        try:
            best = money.best_of(cluster, found, self.rates)
        except MissingDatum:  # in a currency that has no rate
            return None
        return money.usd_per_accelerator(cluster, best.price, self.rates) * cluster.size
