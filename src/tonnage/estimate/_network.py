"""Seconds of collectives over a hierarchy of links: latency and bandwidth, as NCCL's rings and trees have them.

All numbers may be arrays.
"""

from typing import Literal

from tonnage.errors import MissingDatum
from tonnage.estimate._rates import Rates
from tonnage.formula import Number, maximum, minimum
from tonnage.spec import Cluster, Link

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"]
PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}


class Network:
    """The links of a cluster: inside of a node, and between nodes, for each accelerator."""

    def __init__(self, cluster: Cluster, rates: Rates):
        self.cluster, self.rates = cluster, rates
        node = cluster.node
        self.inside = (node.inside if node else None) or cluster.accelerator.scale_up or cluster.accelerator.host_link
        self.outside = node.outside if node else None

    def _rate(self, link: Link | None, where: str, share: float) -> float:
        if link is None:
            raise MissingDatum(f"no source gives the link {where} of {self.cluster.name}: give a node that has one.")
        return link.bytes_per_second * share

    def seconds(self, kind: Collective, size: Number, group: Number, stride: Number = 1) -> Number:
        """Of `size` bytes in all that `group` ranks share, which are `stride` ranks apart."""
        r = self.rates
        per_node = self.cluster.accelerators_per_node
        here = minimum(maximum(per_node / stride, 1), group)
        nodes = maximum(group / here, 1)
        several = (group > 1) * 1.0
        spans = (nodes > 1) * 1.0
        inside = self._rate(self.inside, "inside of a node", r.inside) if per_node > 1 else float("inf")
        outside = self._rate(self.outside, "between nodes", r.outside) if self.cluster.num_nodes > 1 else inside
        if kind == "all_to_all":
            away = size * (nodes - 1) / nodes / outside
            near = size / nodes * (here - 1) / here / inside
            moving = away + near
        else:
            rate = minimum(inside, outside * here) * spans + inside * (1 - spans) if self.cluster.num_nodes > 1 else inside
            moving = PASSES[kind] * size * (group - 1) / group / rate
        return several * (moving + PASSES[kind] * (r.latency_inside + spans * r.latency_outside * nodes**0.5))

    def send(self, size: Number, stride: Number) -> Number:
        """From one rank to another that is `stride` ranks away."""
        away = (stride >= self.cluster.accelerators_per_node) * 1.0
        if self.cluster.num_nodes == 1:
            return size / self._rate(self.inside, "inside of a node", self.rates.inside) + self.rates.latency_inside
        inside = self._rate(self.inside, "inside of a node", self.rates.inside) if self.cluster.accelerators_per_node > 1 else float("inf")
        rate = away * self._rate(self.outside, "between nodes", self.rates.outside) + (1 - away) * inside
        return size / rate + self.rates.latency_outside
