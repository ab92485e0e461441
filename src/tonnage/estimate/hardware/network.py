"""Seconds of collectives over links of two levels. All numbers may be arrays.

Between NVIDIA's GPUs they take what the fastest of NCCL's algorithms and protocols takes (nccl.py); what other
libraries do is one ring, one tree and one ramp.
"""

from functools import reduce
from typing import Literal, NamedTuple

from msgspec.structs import replace

from tonnage.estimate.hardware import nccl
from tonnage.estimate.hardware.links import FAST, Inside, Level, Links, links, mixed
from tonnage.estimate.hardware.nccl import LL, PROTOCOLS, SIMPLE, Steps
from tonnage.estimate.hardware.rates import Rates
from tonnage.estimate.hardware.routing import Routing
from tonnage.formulas import network as f
from tonnage.formulas.time import transfer_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import SCALARS, Number, is_any, maximum, minimum
from tonnage.spec import Cluster, Link, StatedLinks

Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
Algorithm = Literal["ring", "tree", "in_network"]
PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
IN_NETWORK = "SHARP"  # what the topology of a network names whose switches sum


class Sending(NamedTuple):
    """Seconds, and the bytes that one rank sends."""

    seconds: Number
    sent: Number


class Spread:
    """How a group of ranks lies on nodes: `here` in each, on `nodes`; `spans` is 1 where these are several, else 0.
    `inside`: of a node.
    """

    def __init__(self, group: Number, here: Number, inside: Inside):
        self.group, self.here, self.inside = group, here, inside
        self.nodes = group / self.here
        self.spans = (self.nodes > 1) * 1.0


class Way(NamedTuple):
    """One algorithm with one protocol for one group: seconds however little is sent, and seconds a byte more."""

    algorithm: Algorithm
    protocol: int
    latency: Number
    per_byte: Number

    def seconds(self, size: Number, ramp: float) -> Number:
        """Seconds of a message of `size` bytes."""
        wire = size * self.per_byte
        if self.algorithm == "tree":
            return f.message_seconds.evaluate(lat=self.latency, tau=wire / nccl.tree_share(self.protocol, size))
        if self.protocol == SIMPLE:
            return f.ramped_seconds.evaluate(lat=self.latency, tau=wire, kappa=ramp)
        return f.message_seconds.evaluate(lat=self.latency, tau=wire)


class Ways(NamedTuple):
    """All ways of one collective among one group. `besides`: seconds that each of them waits besides; `several`: 1
    where ranks are several, else 0. `asked`: the group and how far apart its ranks are, which a later call must have.
    """

    ways: tuple[Way, ...]
    besides: Number
    several: Number
    asked: tuple[Number, Number]


KEPT = 16  # groups whose ways a network keeps


AS_CATALOGUED = StatedLinks()


def _stated(link: Link | None, rate: float | None) -> Link | None:
    """The link with this rate, where one is stated; of no link that the catalogue knows, one whose kind is unknown."""
    if rate is None:
        return link
    return Link(name="as stated", bytes_per_second=rate) if link is None else replace(link, bytes_per_second=rate)


class Network:
    """The links of a cluster for each accelerator: inside of a node, and between nodes."""

    def __init__(
        self,
        cluster: Cluster,
        rates: Rates | None = None,
        constants: Links | None = None,
        stated: StatedLinks = AS_CATALOGUED,
    ):
        self.cluster, self.rates = cluster, rates
        self.constants = constants or links()
        node, chip = cluster.node, cluster.accelerator
        self.nccl_base = self.constants.base if chip.vendor == "NVIDIA" else None
        self.per_node = cluster.accelerators_per_node
        self._known: dict[tuple[object, ...], Ways] = {}
        self._known_routes: dict[tuple[object, ...], tuple[Spread, Number, Number]] = {}
        within = _stated(
            (node.inside if node else None) or chip.scale_up or chip.host_link, stated.intra_node_bandwidth
        )
        self.bridge: Level | None = None
        torus = node.inside.joins if node and node.inside and node.inside.joins > node.accelerators else 0
        if torus:  # it goes on through the hosts of a slice
            self.per_node = max(self.per_node, min(torus, cluster.size))
        elif within and 0 < within.joins < self.per_node:  # beyond a bridge cards talk through the host
            self.bridge = self._level(within, "inside of a node", True, True)
            within = chip.host_link
        self.inside = self._level(within, "inside of a node", True, self.per_node > 1)
        of_each = stated.inter_node_bandwidth and stated.inter_node_bandwidth / cluster.accelerators_per_node
        beyond = _stated(node.outside if node else None, of_each)
        self.outside = self._level(beyond, "between nodes", False, cluster.size > self.per_node)
        self.waits = (rates.latency_inside, rates.latency_outside) if rates else (0.0, 0.0)

    def _level(self, link: Link | None, where: str, inside: bool, is_used: bool) -> Level:
        unknown = self.constants.inside if inside else self.constants.outside
        if not is_used:
            return Level(None, unknown, self.nccl_base)
        if link is None:
            raise MissingDatum(
                "no source gives the link {where} of {cluster}: the time of a step needs it. Name a node "
                "that has one, such as 16xdgx-h100.",
                where=where,
                cluster=self.cluster.name,
            )
        return Level(link, self.constants.of(link, inside=inside), self.nccl_base)

    def bridges(self, reach: Number) -> Number:
        """1 where ranks that reach so far have a bridge between them all, else 0."""
        return (reach <= self.bridge.link.joins) * 1.0 if self.bridge and self.bridge.link else 0.0

    def rate_inside(self, ranks: Number) -> Number:
        """Bytes a second that each of so many ranks of a node, side by side, sends to the others in large messages."""
        return self._inside(ranks, ranks).ring

    def _inside(self, reach: Number, ranks: Number) -> Inside:
        """The level inside of a node to `ranks` ranks, the last of which is `reach` places from the first."""
        near, level = self.bridge, self.inside
        part, pair = _mesh_share(level.link, ranks), _mesh_share(level.link, 2)
        of_two = (ranks <= 2) * 1.0 if level.pair != level.ring else 0.0
        ring = (of_two * level.pair + (1 - of_two) * level.ring) * part
        plain = Inside(ring, level.direct * pair, level.plain, level.step, level.ll_most, level.steps)
        if near is None:
            return plain
        bridged = Inside(near.ring, near.direct, near.plain, near.step, near.ll_most, near.steps)
        return mixed(self.bridges(reach), bridged, plain)

    def _spread(self, group: Number, stride: Number) -> Spread:
        here = minimum(maximum(self.per_node / stride, 1), group)
        return Spread(group, here, self._inside(group * stride, here))

    def collective(
        self, kind: Collective, size: Number, group: Number, stride: Number = 1, algorithm: Algorithm | None = None
    ) -> Sending:
        """`size` bytes in all among `group` ranks that are `stride` ranks apart, by the fastest algorithm or the one
        that is named.

        `size` counts as nccl-tests does: what an all-gather has gathered, what one rank has for all others in an
        all-to-all.
        """
        ways, besides, several, _ = self.ways(kind, group, stride)
        named = [way for way in ways if way.algorithm == algorithm] if algorithm else None
        seconds = reduce(minimum, (self._seconds(way, size) for way in named or ways))
        sent = f.ring_bytes.evaluate(M=PASSES[kind] * size, n=group)
        return Sending(several * (seconds + besides), sent)

    def chosen(self, kind: Collective, size: float, group: int, stride: int = 1) -> tuple[Algorithm, str]:
        """The fastest algorithm of a message, and its protocol."""
        ways = self.ways(kind, group, stride).ways
        fastest = min(ways, key=lambda way: self._seconds(way, size))
        return fastest.algorithm, PROTOCOLS[fastest.protocol]

    def _seconds(self, way: Way, size: Number) -> Number:
        if self.inside.steps is not None:
            return way.seconds(size, self.constants.ramp)
        return self._pipelined(way.latency, size * way.per_byte)

    def ways(self, kind: Collective, group: Number, stride: Number) -> Ways:
        """All ways of a collective among `group` ranks that are `stride` ranks apart."""
        key = kind if kind in ("all_reduce", "all_to_all") else "all_gather", _key(group), _key(stride)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[key] = self._ways(kind, group, stride)
        return known

    def _ways(self, kind: Collective, group: Number, stride: Number) -> Ways:
        spread, passes = self._spread(group, stride), PASSES[kind]
        if kind == "all_to_all":
            ways = [self._exchange(spread)]
        elif spread.inside.steps is None:
            ways = self._plain_ways(kind, spread)
        else:
            ways = self._rings(passes, spread, spread.inside.steps)
            if kind == "all_reduce":
                ways += [*self._trees(spread, spread.inside.steps), *self._summed(spread)]
        besides, gap = self._wait(passes, spread), self.outside.kind.gap
        if gap:
            besides = besides + spread.spans * f.messages_seconds.evaluate(n=group, lat_gap=gap)
        return Ways(tuple(ways), besides, (group > 1) * 1.0, (group, stride))

    def _wait(self, passes: int, spread: Spread) -> Number:
        """What ranks of a training step wait for each other, beyond what a collective takes alone."""
        if not any(self.waits):
            return 0.0
        return passes * (self.waits[0] + spread.spans * self.waits[1] * spread.nodes**0.5)

    # ---- seconds of one byte ----

    def _ring_byte(self, spread: Spread, passing: Number) -> Number:
        """A ring enters and leaves each node through the links of all its members there: the slower level sets its
        pace.
        """
        between = self.outside.ring * spread.here + (1 - spread.spans) * FAST
        return transfer_seconds.evaluate(M=passing, W=minimum(spread.inside.ring, between))

    def _summed_byte(self, spread: Spread, between: Number, in_network: bool) -> Number:
        """Summed in each node, by its switch or round a ring, then `between` nodes, both levels at once."""
        here = spread.here
        if in_network:
            within = transfer_seconds.evaluate(M=f.in_network_bytes.evaluate(M=1, n=here), W=self.inside.in_network)
        else:
            passing = f.ring_bytes.evaluate(M=2, n=here)
            within = transfer_seconds.evaluate(M=passing, W=spread.inside.ring) + self._own_part(spread)
        beyond = transfer_seconds.evaluate(M=between, W=self.outside.ring) * spread.spans
        return f.overlapped_seconds.evaluate(tau_in=within, tau_out=beyond)

    # ---- NCCL ----

    def _rings(self, passes: int, spread: Spread, steps: Steps) -> list[Way]:
        spans, delay = spread.spans, self.outside.kind.delay
        inside = f.ring_steps_inside.evaluate(n_pass=passes, n=spread.group, nodes=spread.nodes)
        between = f.ring_steps_between.evaluate(n_pass=passes, nodes=spread.nodes)
        passing = f.ring_bytes.evaluate(M=passes, n=spread.group)
        wire, own = self._ring_byte(spread, passing), self._own_part(spread)
        is_far = is_any(spans > 0)
        ways = []
        for protocol, payload in enumerate(nccl.RING_PAYLOAD):
            if is_number(steps.ring_base[protocol]) and steps.ring_base[protocol] >= 1:
                continue  # NCCL never takes it
            step = steps.ring[protocol]
            latency = f.steps_latency.evaluate(
                lat_base=steps.ring_base[protocol],
                n_inner=inside,
                n_across=between,
                lat_in=maximum(step, spans * nccl.NET_POST[protocol]) if is_far else step,
                lat_out=nccl.NET_RING[protocol] + _delays(protocol) * delay,
            )
            per_byte = wire / payload
            if protocol == LL:
                per_byte = maximum(per_byte, passing / self._ll_most(spread, is_far))
            ways.append(Way("ring", protocol, latency, per_byte + own))
        return ways

    def _ll_most(self, spread: Spread, is_far: bool) -> Number:
        """Bytes a second that LL reaches round a ring at the most."""
        if not is_far:
            return spread.inside.ll_most
        many = (spread.nodes > 2) * 1.0
        between = many * nccl.LL_NODES + (1 - many) * nccl.LL_TWO_NODES
        return minimum(spread.inside.ll_most, between + (1 - spread.spans) * FAST)

    def _trees(self, spread: Spread, steps: Steps) -> list[Way]:
        """A chain in each node, and a double binary tree of nodes: none on one node, also where other groups of an
        array are on several.
        """
        if not is_any(spread.nodes > 1):
            return []
        constants, delay = self.constants, self.outside.kind.delay
        many = (spread.nodes > 2) * 1.0
        reached = many * constants.trees + (1 - many) * constants.tree
        most = many * nccl.LL_NODES + (1 - many) * nccl.LL_TWO_NODES
        carried = f.busiest_tree_bytes.evaluate(M=1, n=spread.here, nodes=spread.nodes)
        wire = self._summed_byte(spread, carried, False)
        inside = f.tree_steps_inside.evaluate(n=spread.here)
        between = f.tree_steps_between.evaluate(nodes=spread.nodes)
        none = (1 - spread.spans) * nccl.NEVER
        ways = []
        for protocol, payload in enumerate(nccl.TREE_PAYLOAD):
            if is_number(steps.tree_base[protocol]) and steps.tree_base[protocol] >= 1:
                continue
            latency = f.steps_latency.evaluate(
                lat_base=steps.tree_base[protocol],
                n_inner=inside,
                n_across=between,
                lat_in=steps.tree[protocol],
                lat_out=nccl.NET_TREE[protocol] + _delays(protocol) * delay,
            )
            latency = latency + none
            per_byte = wire if protocol == SIMPLE else wire / (payload * reached)
            ways.append(Way("tree", protocol, latency, maximum(per_byte, 2 / most) if protocol == LL else per_byte))
        return ways

    def _summed(self, spread: Spread) -> list[Way]:
        """An all-reduce that switches sum: those of a node, those between nodes, or both."""
        outside, sums, inside = self.outside, self.outside_sums, self.inside
        delay = _delays(SIMPLE) * outside.kind.delay
        if not inside.sums and not sums:
            return []
        between = 1 / spread.here if sums else f.busiest_tree_bytes.evaluate(M=1, n=spread.here, nodes=spread.nodes)
        per_byte = self._summed_byte(spread, between, inside.sums)
        chunks = inside.kind.chunks
        if not inside.sums:
            latency = f.in_network_latency.evaluate(n=spread.here, lat_in=nccl.CHAIN, lat_out=nccl.CHAIN_NET + delay)
        elif sums:
            beyond = spread.spans * (nccl.NVLS_SHARP_NET + delay)
            latency = f.message_seconds.evaluate(lat=nccl.NVLS * chunks, tau=beyond)
        else:
            latency = f.nvls_latency.evaluate(
                nodes=spread.nodes, lat_in=nccl.NVLS * chunks, lat_out=nccl.NVLS_TREE_NET + delay
            )
        return [Way("in_network", SIMPLE, latency, per_byte)]

    @property
    def outside_sums(self) -> bool:
        """Whether the switches between nodes sum."""
        return self.outside.link is not None and IN_NETWORK in self.outside.link.topology

    # ---- other libraries ----

    def _plain_ways(self, kind: Collective, spread: Spread) -> list[Way]:
        """One ring, and one tree of an all-reduce, by steps of one length."""
        passes, start = PASSES[kind], self.constants.start
        lat_in, lat_out = spread.inside.step, self.outside.step
        latency = f.steps_latency.evaluate(
            lat_base=start,
            n_inner=f.ring_steps_inside.evaluate(n_pass=passes, n=spread.group, nodes=spread.nodes),
            n_across=f.ring_steps_between.evaluate(n_pass=passes, nodes=spread.nodes),
            lat_in=lat_in,
            lat_out=lat_out,
        )
        passing = f.ring_bytes.evaluate(M=passes, n=spread.group)
        ways = [Way("ring", SIMPLE, latency, self._ring_byte(spread, passing) + self._own_part(spread))]
        if kind != "all_reduce":
            return ways
        sums, here, nodes = self.outside_sums, spread.here, spread.nodes
        between = 1 / here if sums else f.tree_bytes.evaluate(M=1, n=here, nodes=nodes)
        latency = f.steps_latency.evaluate(
            lat_base=start,
            n_inner=f.tree_steps_inside.evaluate(n=here),
            n_across=2 if sums else f.tree_steps_between.evaluate(nodes=nodes),
            lat_in=lat_in,
            lat_out=lat_out,
        )
        return [*ways, Way("tree", SIMPLE, latency, self._summed_byte(spread, between, False))]

    # ---- messages between two ranks ----

    def _first(self, spread: Spread, protocol: int) -> Number:
        """Seconds until a rank has the first byte of another."""
        inside, steps = spread.inside, spread.inside.steps
        if steps is None:
            return self.constants.start + inside.step + spread.spans * self.outside.step
        beyond = nccl.NET_RING[protocol] + _delays(protocol) * self.outside.kind.delay
        return steps.ring_base[protocol] + steps.ring[protocol] + spread.spans * beyond

    def _exchange(self, spread: Spread) -> Way:
        """In an all-to-all every rank sends what is for other nodes through its own link."""
        wire = f.hierarchical_exchange_seconds.evaluate(
            M=1, n=spread.here, nodes=spread.nodes, W=spread.inside.ring, W_out=self.outside.ring
        )
        steps = f.messages_seconds.evaluate(n=spread.group, lat_gap=self.constants.peer)
        per_byte = wire + self._own_part(spread, self.inside.kind.copy)
        return Way("ring", SIMPLE, self._first(spread, LL) + steps, per_byte)

    def dispatch(self, size: Number, group: Number, stride: Number, routing: Routing, along: bool = False) -> Sending:
        """An exchange of tokens, each to the ranks of its experts, in which a token goes once to a rank, and
        once to a node, of several of them (DeepEP, HybridEP); both levels send at once. `size`: bytes of all copies;
        `along`: they travel in the messages of another exchange, which start but once.
        """
        spread, to_ranks, to_nodes = self._tokens_spread(group, stride, routing)
        passing = f.ring_bytes.evaluate(M=size * to_ranks, n=spread.here)
        leaving = f.ring_bytes.evaluate(M=size * to_nodes, n=spread.nodes)
        wire = maximum(
            transfer_seconds.evaluate(M=passing, W=spread.inside.ring),
            transfer_seconds.evaluate(M=leaving, W=self.outside.ring),
        )
        steps = self.constants.start + spread.inside.step + spread.spans * self.outside.step
        several = (group > 1) * 1.0
        seconds = several * (wire if along else self._pipelined(steps, wire) + self._wait(1, spread))
        return Sending(seconds, f.ring_bytes.evaluate(M=size * to_ranks, n=group))

    def _tokens_spread(self, group: Number, stride: Number, routing: Routing) -> tuple[Spread, Number, Number]:
        """The ranks, and the shares of all copies of a token that go to other ranks and to other nodes: the same for
        every number of tokens.
        """
        key = routing, _key(group), _key(stride)
        known = self._known_routes.get(key)
        if known is None:
            spread = self._spread(group, stride)
            to_ranks = routing.places(group) / routing.chosen
            known = spread, to_ranks, routing.places(spread.nodes) / routing.chosen
            if is_number(group) and is_number(stride):
                self._known_routes[key] = known
        return known

    def _own_part(self, spread: Spread, copy: float = 0.0) -> Number:
        """Seconds of a byte for what a rank keeps; `copy`: of the link's rate, 0 as in a ring."""
        rate = (copy or self.constants.copy) * spread.inside.plain
        return f.own_part_seconds.evaluate(M=1, n=spread.group, W_copy=rate)

    def _pipelined(self, latency: Number, wire: Number) -> Number:
        return f.pipelined_seconds.evaluate(lat=latency, tau=wire, kappa=self.constants.pipelining)

    def send(self, size: Number, stride: Number) -> Number:
        """From one rank to another that is `stride` ranks away."""
        away = (stride >= self.per_node) * 1.0
        inside = self._inside(stride + 1, 2)
        rate = away * self.outside.direct + (1 - away) * inside.direct
        step = away * self.outside.step + (1 - away) * inside.step
        wire = transfer_seconds.evaluate(M=size, W=rate)
        return self._pipelined(self.constants.start + step, wire) + self.waits[0]


def _delays(protocol: int) -> int:
    """How often a step between nodes pays the network's delay: once more to flush what Simple has sent."""
    return 2 if protocol == SIMPLE else 1


def is_number(value: Number) -> bool:
    """Whether it is one number, not an array of them."""
    return type(value) in SCALARS


def _key(number: Number) -> object:
    """What a number is known by: its value, or which array it is."""
    return number if is_number(number) else id(number)


def _mesh_share(link: Link | None, ranks: Number) -> Number:
    """The share of its links that a rank uses in a group of `ranks`: in a mesh without a switch each link leads to one
    neighbour.

    1 for one rank: it has no neighbour, and the links inside of a node do not slow what it sends to other nodes.
    """
    if link is None or not link.mesh_links:
        return 1.0
    formula = f.cube_mesh_share if link.mesh == "cube" else f.full_mesh_share
    alone = (ranks <= 1) * 1.0
    return alone + (1 - alone) * formula.evaluate(n=maximum(ranks, 2), k=link.mesh_links)
