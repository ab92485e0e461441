"""Seconds of collectives over links of two levels. All numbers may be arrays."""

from collections.abc import Mapping
from functools import cache, reduce
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from tonnage.estimate.hardware.rates import Rates
from tonnage.formulas import network as f
from tonnage.formulas.time import transfer_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number, maximum, minimum
from tonnage.kernel.prepared import tables
from tonnage.spec import Cluster, Link

# ---- What links reach of their datasheets: links.toml, made by scripts/fit_links.py.


class LinkKind(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links of one generation, by how their names begin.

    `share`: of the datasheet's bytes a second, that collectives reach in large messages; `direct`: that one copy to one
    place reaches;
    `in_network`: that an all-reduce reaches which the switch sums, 0 where no switch does. `step`: seconds from one
    rank to the next.
    `gap`: seconds that each further rank of a collective costs, however little is sent.
    """

    share: float
    direct: float
    step: float
    in_network: float = 0.0
    gap: float = 0.0
    is_measured: bool = True


class Links(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that collectives are fitted with.

    `start`: seconds of a collective that sends nothing; `peer`: seconds for each rank that an all-to-all writes to;
    `pipelining`: share of a latency that each chunk pays again; `copy`: a rank's copies of its own part, as a multiple
    of its links' bytes a second; `local`: of its memory's bytes a second, that a copy inside of it reaches. `kinds`: by
    the beginning of a link's name. `inside` and `outside`: of what nobody measured.
    """

    start: float
    peer: float
    pipelining: float
    copy: float
    local: float
    kinds: Mapping[str, LinkKind]
    inside: LinkKind
    outside: LinkKind

    def of(self, link: Link, *, inside: bool) -> LinkKind:
        """The kind of a link: the longest beginning that fits its name."""
        fitting = [name for name in self.kinds if _begins(link.name, name)]
        if fitting:
            return self.kinds[max(fitting, key=len)]
        return self.inside if inside else self.outside


def _begins(name: str, with_: str) -> bool:
    """NVLink 1 does not begin NVLink 12."""
    return name == with_ or name.startswith(with_ + " ")


@cache
def links() -> Links:
    """The constants that ship."""
    shipped: Links = tables(str(Path(__file__).with_name("links.toml")), Links)
    return shipped


Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
Algorithm = Literal["ring", "tree", "in_network"]
PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
FAST = 1e30  # bytes a second of a link that is not used: finite, so that nothing times it is a number
IN_NETWORK = "SHARP"  # what the topology of a network names whose switches sum


class Sending(NamedTuple):
    """Seconds, and the bytes that one rank sends."""

    seconds: Number
    sent: Number


class Level:
    """One level of links: bytes a second of each rank, by what is sent, and what kind of link it is."""

    def __init__(self, link: Link | None, kind: LinkKind):
        self.link, self.kind, self.step = link, kind, kind.step
        self.sums = kind.in_network > 0 and link is not None and not link.joins  # a bridge has no switch
        rate = link.bytes_per_second if link else FAST
        self.ring, self.direct = rate * kind.share, rate * kind.direct
        self.in_network = rate * kind.in_network
        self.plain = rate


class Inside(NamedTuple):
    """What a level inside of a node is to one group, or to an array of them."""

    ring: Number
    direct: Number
    plain: Number
    step: Number


class Spread:
    """How a group of ranks lies on nodes: `here` in each, on `nodes`; `spans` is 1 where these are several, else 0.
    `inside`: of a node.
    """

    def __init__(self, group: Number, here: Number, inside: Inside):
        self.group, self.here, self.inside = group, here, inside
        self.nodes = group / self.here
        self.spans = (self.nodes > 1) * 1.0


class Network:
    """The links of a cluster for each accelerator: inside of a node, and between nodes."""

    def __init__(self, cluster: Cluster, rates: Rates | None = None, constants: Links | None = None):
        self.cluster, self.rates = cluster, rates
        self.constants = constants or links()
        node, chip = cluster.node, cluster.accelerator
        self.per_node = cluster.accelerators_per_node
        within = (node.inside if node else None) or chip.scale_up or chip.host_link
        self.bridge: Level | None = None
        torus = node.inside.joins if node and node.inside and node.inside.joins > node.accelerators else 0
        if torus:  # it goes on through the hosts of a slice
            self.per_node = max(self.per_node, min(torus, cluster.size))
        elif within and 0 < within.joins < self.per_node:  # beyond a bridge cards talk through the host
            self.bridge = self._level(within, "inside of a node", True, True)
            within = chip.host_link
        self.inside = self._level(within, "inside of a node", True, self.per_node > 1)
        self.outside = self._level(node.outside if node else None, "between nodes", False, cluster.size > self.per_node)
        self.waits = (rates.latency_inside, rates.latency_outside) if rates else (0.0, 0.0)

    def _level(self, link: Link | None, where: str, inside: bool, is_used: bool) -> Level:
        unknown = self.constants.inside if inside else self.constants.outside
        if not is_used:
            return Level(None, unknown)
        if link is None:
            raise MissingDatum(
                "no source gives the link {where} of {cluster}: the time of a step needs it. Name a node "
                "that has one, such as 16xdgx-h100.",
                where=where,
                cluster=self.cluster.name,
            )
        return Level(link, self.constants.of(link, inside=inside))

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
        plain = Inside(level.ring * part, level.direct * pair, level.plain, level.step)
        if near is None:
            return plain
        share, bridged = self.bridges(reach), Inside(near.ring, near.direct, near.plain, near.step)
        return Inside(*(share * a + (1 - share) * b for a, b in zip(bridged, plain, strict=True)))

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
        spread = self._spread(group, stride)
        if kind == "all_to_all":
            seconds = self._exchange(size, spread)
        elif kind == "all_reduce":
            seconds = self._all_reduce(size, spread, algorithm)
        else:
            seconds = self._ring(PASSES[kind], size, spread)
        several = (group > 1) * 1.0
        many = spread.spans * f.messages_seconds.evaluate(n=group, lat_gap=self.outside.kind.gap)
        sent = f.ring_bytes.evaluate(M=PASSES[kind] * size, n=group)
        return Sending(several * (seconds + many + self._wait(PASSES[kind], spread)), sent)

    def _wait(self, passes: int, spread: Spread) -> Number:
        """What ranks of a training step wait for each other, beyond what a collective takes alone."""
        return passes * (self.waits[0] + spread.spans * self.waits[1] * spread.nodes**0.5)

    def _all_reduce(self, size: Number, spread: Spread, algorithm: Algorithm | None) -> Number:
        ways = {"ring": lambda: self._ring(2, size, spread), "tree": lambda: self._tree(size, spread, False)}
        if self.inside.sums:
            ways["in_network"] = lambda: self._tree(size, spread, True)
        if algorithm in ways:
            return ways[algorithm]()
        return reduce(minimum, (way() for way in ways.values()))

    def _ring(self, passes: int, size: Number, spread: Spread) -> Number:
        """A ring enters and leaves each node through the links of all its members there: the slower level sets its
        pace.
        """
        between = self.outside.ring * spread.here + (1 - spread.spans) * FAST
        rate = minimum(spread.inside.ring, between)
        passing = f.ring_bytes.evaluate(M=passes * size, n=spread.group)
        wire = transfer_seconds.evaluate(M=passing, W=rate) + self._own_part(size, spread)
        steps = f.ring_latency.evaluate(
            n_pass=passes, n=spread.group, nodes=spread.nodes, lat_in=spread.inside.step, lat_out=self.outside.step
        )
        return self._pipelined(steps, wire)

    def _tree(self, size: Number, spread: Spread, in_network: bool) -> Number:
        """Summed in each node, then over a tree of nodes, where the links of all members of a node share the load."""
        outside, here = self.outside, spread.here
        if in_network:
            within = transfer_seconds.evaluate(M=f.in_network_bytes.evaluate(M=size, n=here), W=self.inside.in_network)
        else:
            passing = f.ring_bytes.evaluate(M=2 * size, n=here)
            within = transfer_seconds.evaluate(M=passing, W=spread.inside.ring) + self._own_part(size, spread)
        lat_in, lat_out = spread.inside.step, outside.step
        sums = outside.link and IN_NETWORK in outside.link.topology
        between = size / here if sums else f.tree_bytes.evaluate(M=size, n=here, nodes=spread.nodes)
        latency = f.in_network_latency if sums else f.tree_latency
        steps = latency.evaluate(n=here, lat_in=lat_in, lat_out=lat_out, **({} if sums else {"nodes": spread.nodes}))
        wire = f.overlapped_seconds.evaluate(
            tau_in=within, tau_out=transfer_seconds.evaluate(M=between, W=outside.ring) * spread.spans
        )
        return self._pipelined(steps, wire)

    def _exchange(self, size: Number, spread: Spread) -> Number:
        """In an all-to-all every rank sends what is for other nodes through its own link."""
        wire = f.hierarchical_exchange_seconds.evaluate(
            M=size, n=spread.here, nodes=spread.nodes, W=spread.inside.ring, W_out=self.outside.ring
        )
        steps = f.messages_seconds.evaluate(n=spread.group, lat_gap=self.constants.peer)
        steps = steps + spread.inside.step + spread.spans * self.outside.step
        return self._pipelined(steps, wire + self._own_part(size, spread))

    def dispatch(self, size: Number, group: Number, stride: Number, chosen: int) -> Sending:
        """An exchange of tokens, each to the ranks of `chosen` experts, in which a token goes once to a rank, and
        once to a node, of several of them (DeepEP, HybridEP); both levels send at once. `size`: bytes of all copies.
        """
        spread = self._spread(group, stride)
        to_ranks, to_nodes = distinct(group, chosen) / chosen, distinct(spread.nodes, chosen) / chosen
        passing = f.ring_bytes.evaluate(M=size * to_ranks, n=spread.here)
        leaving = f.ring_bytes.evaluate(M=size * to_nodes, n=spread.nodes)
        wire = maximum(
            transfer_seconds.evaluate(M=passing, W=spread.inside.ring),
            transfer_seconds.evaluate(M=leaving, W=self.outside.ring),
        )
        steps = spread.inside.step + spread.spans * self.outside.step
        several = (group > 1) * 1.0
        seconds = several * (self._pipelined(steps, wire) + self._wait(1, spread))
        return Sending(seconds, f.ring_bytes.evaluate(M=size * to_ranks, n=group))

    def _own_part(self, size: Number, spread: Spread) -> Number:
        rate = self.constants.copy * spread.inside.plain
        return f.own_part_seconds.evaluate(M=size, n=spread.group, W_copy=rate)

    def _pipelined(self, steps: Number, wire: Number) -> Number:
        constants = self.constants
        return f.pipelined_seconds.evaluate(lat=constants.start + steps, tau=wire, kappa=constants.pipelining)

    def send(self, size: Number, stride: Number) -> Number:
        """From one rank to another that is `stride` ranks away."""
        away = (stride >= self.per_node) * 1.0
        inside = self._inside(stride + 1, 2)
        rate = away * self.outside.direct + (1 - away) * inside.direct
        step = away * self.outside.step + (1 - away) * inside.step
        wire = transfer_seconds.evaluate(M=size, W=rate)
        return self._pipelined(step, wire) + self.waits[0]


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


def distinct(places: Number, chosen: int) -> Number:
    """Places that `chosen` experts, drawn without regard to them, lie on, on average."""
    return places * (1 - (1 - 1 / places) ** chosen)
