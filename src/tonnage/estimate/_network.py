"""Seconds of collectives over a hierarchy of links. All numbers may be arrays."""

from typing import Literal, NamedTuple

from tonnage.errors import MissingDatum
from tonnage.estimate._rates import Rates
from tonnage.formula import Number, maximum, minimum
from tonnage.formulas import network as f
from tonnage.spec import Cluster, Link

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
NOWHERE = float("inf")


class Sending(NamedTuple):
    """Seconds, and the bytes that one rank sends."""

    seconds: Number
    sent: Number


class Network:
    """The links of a cluster for each accelerator: inside of a node, and between nodes."""

    def __init__(self, cluster: Cluster, rates: Rates):
        self.cluster, self.rates = cluster, rates
        node, chip = cluster.node, cluster.accelerator
        self.per_node = cluster.accelerators_per_node
        self.inside = self._rate(
            (node and node.inside) or chip.scale_up or chip.host_link,
            "inside of a node",
            rates.inside,
            self.per_node > 1,
        )
        self.outside = self._rate(node.outside if node else None, "between nodes", rates.outside, cluster.num_nodes > 1)

    def _rate(self, link: Link | None, where: str, share: float, is_used: bool) -> float:
        if not is_used:
            return NOWHERE
        if link is None:
            raise MissingDatum(
                f"no source gives the link {where} of {self.cluster.name}: the time of a step needs it. Name a node that has one, such as "
                "16xdgx-h100."
            )
        return link.bytes_per_second * share

    def dispatch(self, size: Number, group: Number, stride: Number, chosen: int) -> Sending:
        """An exchange of tokens, each to the ranks of `chosen` experts, in which a token goes once to a rank, and once to a node, of
        several of them (DeepEP, HybridEP). `size`: bytes of all copies."""
        here = minimum(maximum(self.per_node / stride, 1), group)
        nodes = group / here
        several = (group > 1) * 1.0
        to_ranks, to_nodes = distinct(group, chosen) / chosen, distinct(nodes, chosen) / chosen
        inside = size * to_ranks * (here - 1) / here / self.inside if not self._is_nowhere(self.inside) else 0
        outside = size * to_nodes * (nodes - 1) / nodes / self.outside if not self._is_nowhere(self.outside) else 0
        start = self.rates.latency_inside + ((nodes > 1) * 1.0) * self.rates.latency_outside * nodes**0.5
        return Sending(several * (maximum(inside, outside) + start), size * to_ranks * (group - 1) / group)

    def _is_nowhere(self, rate: float) -> bool:
        return rate == NOWHERE

    def collective(self, kind: Collective, size: Number, group: Number, stride: Number = 1) -> Sending:
        """`size` bytes in all among `group` ranks that are `stride` ranks apart.

        A ring enters and leaves each node through the links of all its members there, so that the slower of the two levels sets its
        pace; in an all-to-all every rank sends what is for other nodes through its own link.
        """
        here = minimum(maximum(self.per_node / stride, 1), group)
        nodes = group / here
        several, spans = (group > 1) * 1.0, (nodes > 1) * 1.0
        passes = PASSES[kind]
        sent = f.ring_bytes.evaluate(M=passes * size, n=group)
        if kind == "all_to_all":
            seconds = f.hierarchical_exchange_seconds.evaluate(
                M=size, n=here, nodes=nodes, W=self.inside, W_out=self.outside
            )
        else:
            rate = minimum(self.inside, self.outside * here + (1 - spans) * self._huge)
            seconds = sent / rate
        start = passes * (self.rates.latency_inside + spans * self.rates.latency_outside * nodes**0.5)
        return Sending(several * (seconds + start), sent)

    @property
    def _huge(self) -> float:
        return 1e30

    def send(self, size: Number, stride: Number) -> Number:
        """From one rank to another that is `stride` ranks away."""
        away = (stride >= self.per_node) * 1.0
        rate = self.outside if self.per_node == 1 else away * min(self.outside, 1e30) + (1 - away) * self.inside
        return size / rate + self.rates.latency_inside


def distinct(places: Number, chosen: int) -> Number:
    """Places that `chosen` experts, drawn without regard to them, lie on, on average."""
    return places * (1 - (1 - 1 / places) ** chosen)
