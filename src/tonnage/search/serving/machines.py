"""What is searched: accelerators whose number is open, and clusters as they were given."""

from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from tonnage.catalogue import accelerator, accelerator_names, cluster
from tonnage.catalogue.clusters import BOX, parts
from tonnage.catalogue.nodes import node
from tonnage.estimate.hardware.links import Level
from tonnage.estimate.hardware.network import IN_NETWORK, Network
from tonnage.estimate.identity import ByIdentity
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.spec import Accelerator, Cluster, Node

ALONE = ("apple", "cpu")  # kinds of which a machine has one


class Machine(Struct, frozen=True, kw_only=True, eq=False):
    """An accelerator whose number is searched, in machines that hold `each`; or a cluster as it was given, `fixed`.
    `whole`: a named node, of which none is used in part.
    """

    name: str
    accelerator: Accelerator
    each: int
    node: Node | None = None
    fixed: Cluster | None = None
    whole: bool = False

    def layouts(self, ranks: int, most: int) -> Iterator[tuple[int, tuple[Cluster, ...]]]:
        """Numbers of replicas of so many ranks, each with the clusters that they fill, fewer machines first: all
        accelerators are used, and those of machines that are alike. A replica is on a part of one machine, or on
        whole ones.
        """
        if self.fixed is not None:
            if self.fixed.size % ranks == 0 and self.fixed.size <= most:
                yield self.fixed.size // ranks, (self.fixed,)
            return
        for replicas in range(1, most // ranks + 1):
            clusters = tuple(self.of(machines, per_machine) for machines, per_machine in self._spread(ranks, replicas))
            if clusters:
                yield replicas, clusters

    def _spread(self, ranks: int, replicas: int) -> Iterator[tuple[int, int]]:
        """Pairs (machines, accelerators of each) that hold these replicas."""
        if ranks > self.each or self.whole:
            if ranks * replicas % self.each == 0:
                yield ranks * replicas // self.each, self.each
            return
        for here in range(min(self.each // ranks, replicas), 0, -1):
            if replicas % here == 0:
                yield replicas // here, here * ranks

    def of(self, machines: int, per_machine: int) -> Cluster:
        return Cluster(
            accelerator=self.accelerator, num_nodes=machines, accelerators_per_node=per_machine, node=self.node
        )

    def on(self, built: Cluster) -> str:
        """The text that --on takes for a cluster."""
        return f"{built.num_nodes}x{self.name}" if self.whole and self.node else built.name


def catalogued() -> tuple[Machine, ...]:
    """The machines of every accelerator in the catalogue."""
    return tuple(_open(name, accelerator(name), None) for name in accelerator_names())


def named(text: str) -> tuple[Machine, ...]:
    """Machines of names with commas between: with a count a cluster, without one an accelerator, or a node, of which
    the number is searched.
    """
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise InvalidInput(
            "{@on} takes names with commas between, such as h100,mi300x,8xH200-SXM-141GB. Got {text}.",
            text=shown(text),
        )
    machines = {machine.name: machine for machine in map(machine_named, names)}
    return tuple(machines.values())


def machine_named(name: str) -> Machine:
    if name == "local":
        return fixed(cluster(name))
    counts, chip, named_node = parts(name)
    return fixed(cluster(name)) if counts else _open(name, chip, named_node)


def fixed(built: Cluster) -> Machine:
    return Machine(
        name=built.name, accelerator=built.accelerator, each=built.accelerators_per_node, node=built.node, fixed=built
    )


def opened(machine: Machine) -> Machine:
    """The machine with its number of accelerators open."""
    return _open(machine.accelerator.name, machine.accelerator, None) if machine.fixed is not None else machine


def _open(name: str, chip: Accelerator, named_node: Node | None) -> Machine:
    if named_node is not None:
        return Machine(
            name=named_node.name, accelerator=chip, each=named_node.accelerators, node=named_node, whole=True
        )
    usual = node(chip.default_node) if chip.default_node else None
    per_machine = usual.accelerators if usual else 1 if chip.kind in ALONE else BOX
    return Machine(name=chip.name, accelerator=chip, each=per_machine, node=usual)


def wires(built: Cluster, ranks: int) -> tuple[object, ...]:
    """What of a cluster's links the times of a replica of so many ranks depend on: replicas of two clusters with the
    same are as fast.

    MissingDatum where a link is not known.
    """
    node = built.node
    is_torus = bool(node and node.inside and node.inside.joins > node.accelerators)
    machines = built.num_nodes if is_torus else min(built.num_nodes, 2)  # beyond two nothing of a link changes
    per_node, sums, inside, outside = _links(
        ByIdentity(built.accelerator), ByIdentity(node), machines, built.accelerators_per_node
    )
    if ranks == 1:
        return ()
    here = (min(per_node, ranks), *inside)
    return (*here, outside) if ranks > per_node or sums else here


@lru_cache(maxsize=4096)
def _links(
    chip: ByIdentity, node: ByIdentity, machines: int, per_machine: int
) -> tuple[int, bool, tuple[object, ...], tuple[object, ...]]:
    network = Network(
        Cluster(accelerator=chip.thing, num_nodes=machines, accelerators_per_node=per_machine, node=node.thing)
    )
    sums = network.outside.link is not None and IN_NETWORK in network.outside.link.topology
    return (
        network.per_node,
        sums,
        (_level_figures(network.inside), _level_figures(network.bridge)),
        _level_figures(network.outside),
    )


def _level_figures(level: Level | None) -> tuple[object, ...]:
    if level is None:
        return ()
    joins = level.link.joins if level.link else 0
    topology = level.link.topology if level.link else ""
    return (
        level.ring,
        level.pair,
        level.direct,
        level.plain,
        level.in_network,
        level.step,
        level.steps,
        level.ll_most,
        level.kind.delay,
        level.kind.gap,
        level.sums,
        joins,
        topology,
    )
