"""Larger machines of the same kind, as `--on` can name them."""

from collections.abc import Iterator

from msgspec.structs import replace

from tonnage.catalogue import accelerator as accelerator_named
from tonnage.catalogue import accelerator_names
from tonnage.catalogue import cluster as cluster_named
from tonnage.catalogue.clusters import BOX, LARGEST
from tonnage.estimate.options.machine import is_slice
from tonnage.kernel.errors import TonnageError
from tonnage.spec import Cluster

USUAL = "H100-SXM-80GB"  # what a run is said to fit on where its own accelerators have no larger machine
# Cards of which none with as much memory costs less an hour, by the prices that are shipped (a test compares them).
MAKER = "NVIDIA"
LARGER = 1.25  # of a card's memory: what a larger card has at least
CHEAPEST = (
    "RTX-A6000",
    "A100-PCIe-80GB",
    "RTX-PRO-6000-Blackwell-Server",
    "H200-SXM-141GB",
    "B200-SXM-180GB",
    "B300-SXM-288GB",
)
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
ALONE = frozenset({"apple", "cpu"})


def doublings(first: int, last: int) -> tuple[int, ...]:
    """first, 2 first, 4 first, ... up to last."""
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= 2
    return tuple(sizes)


class Machines:
    """A cluster and larger ones of the same accelerators. Moves count accelerators until they are settled."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.come_alone = cluster.accelerator.kind in ALONE or is_slice(cluster.accelerator)
        bridged = cluster.accelerator.scale_up is not None and cluster.accelerator.scale_up.joins > 0
        own = cluster.node.accelerators if cluster.node and not bridged else BOX
        widens = cluster.num_nodes == 1 and not self.come_alone
        self.node_size = max(cluster.accelerators_per_node, own) if widens else cluster.accelerators_per_node

    def of(self, accelerators: int | Cluster | None) -> Cluster:
        """So many accelerators, in nodes of the same size; None: the cluster itself; another machine is one."""
        if accelerators is None:
            return self.cluster
        if isinstance(accelerators, Cluster):
            return accelerators
        if accelerators <= self.node_size:
            return replace(self.cluster, num_nodes=1, accelerators_per_node=accelerators)
        nodes = -(-accelerators // self.node_size)
        return replace(self.cluster, num_nodes=nodes, accelerators_per_node=self.node_size)

    def larger(self, times: int) -> tuple[int, ...]:
        """Numbers of accelerators, up to so many times the cluster: within the node, then in whole nodes, many at a
        time where the cluster has very many.

        None of what comes alone or in slices, and none where `--on` would read the cluster's name as something else: an
        accelerator of a file, or of this computer.
        """
        size, per_node = self.cluster.size, self.node_size
        if self.come_alone or not self._has_a_name():
            return ()
        nodes = max(size // per_node, 1)
        sizes = range((size // per_node + 1) * per_node, times * max(per_node, size) + 1, per_node * -(-nodes // times))
        return (*doublings(2 * size, per_node - 1), *sizes)

    def holding(self, accelerators: int) -> int | None:
        """The fewest accelerators, at least so many, that `--on` can name; None of what comes alone, has no name or
        is larger than any cluster.
        """
        full_nodes = -(-accelerators // self.node_size) * self.node_size
        count = accelerators if accelerators <= self.node_size else full_nodes
        return None if self.come_alone or count > LARGEST or not self._has_a_name() else count

    def _has_a_name(self) -> bool:
        try:
            return cluster_named(self.cluster.accelerator.name).accelerator == self.cluster.accelerator
        except TonnageError:
            return False


def other_machines(cluster: Cluster, least_bytes: float) -> Iterator[list[Cluster]]:
    """Nodes of larger cards that cost least for their memory, the smallest cards first: of each card the two with the
    fewest that hold so many bytes in all.
    """
    chip = cluster.accelerator
    if chip.kind != "gpu" or chip.vendor != MAKER or is_slice(chip):
        return
    for name in CHEAPEST:
        bytes_of_one = accelerator_named(name).memory.usable_bytes
        counts = [count for count in COUNTS if count <= BOX and count * bytes_of_one >= least_bytes]
        if bytes_of_one >= LARGER * chip.memory.usable_bytes:
            yield [cluster_named(_of(count, name)) for count in counts[:2]]


def elsewhere(cluster: Cluster, least_bytes: float) -> Iterator[Cluster]:
    """Machines that a run may fit on that fits on none of its own accelerators, the smallest first: the whole GPU of
    a slice, larger chips of the kind that comes alone, then larger cards that hold so many bytes, and what is usual.
    """
    chip = cluster.accelerator
    if is_slice(chip):
        chip_name = chip.name.partition(":")[0]
        yield from (cluster_named(_of(count, chip_name)) for count in COUNTS[:4])
    elif chip.kind in ALONE:
        same_kind = [name for name in accelerator_names() if name.startswith(f"{chip.kind}-")]
        larger = [
            one
            for name in same_kind
            if (one := cluster_named(name)).accelerator.memory.usable_bytes > chip.memory.usable_bytes
        ]
        yield from sorted(larger, key=lambda one: one.accelerator.memory.usable_bytes)
    usual = COUNTS if chip.name.partition(":")[0] != USUAL else ()
    others = [machine for machines in other_machines(cluster, least_bytes) for machine in machines]
    yield from sorted([*others, *(cluster_named(_of(count, USUAL)) for count in usual)], key=_bytes)


def _bytes(machine: Cluster) -> int:
    """The memory of all accelerators."""
    return machine.size * machine.accelerator.memory.usable_bytes


def _of(count: int, name: str) -> str:
    if count == 1:
        return name
    return f"{count}x{name}" if count <= BOX else f"{count // BOX}x{BOX}x{name}"
