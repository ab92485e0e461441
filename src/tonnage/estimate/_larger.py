"""Larger machines of the same kind, as `--on` can name them."""

from msgspec.structs import replace

from tonnage.catalogue import cluster as cluster_named
from tonnage.catalogue.clusters import BOX
from tonnage.errors import TonnageError
from tonnage.estimate._machine import is_slice
from tonnage.spec import Cluster

ALONE = frozenset({"apple", "cpu"})


def doublings(first: int, last: int) -> tuple[int, ...]:
    """first, 2 first, 4 first, ... up to last."""
    made = []
    while first <= last:
        made.append(first)
        first *= 2
    return tuple(made)


class Machines:
    """A cluster and larger ones of the same accelerators. Moves count accelerators until they are settled."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.come_alone = cluster.accelerator.kind in ALONE or is_slice(cluster.accelerator)
        bridged = cluster.accelerator.scale_up is not None and cluster.accelerator.scale_up.joins > 0
        own = cluster.node.accelerators if cluster.node and not bridged else BOX
        widens = cluster.num_nodes == 1 and not self.come_alone
        self.node_size = max(cluster.accelerators_per_node, own) if widens else cluster.accelerators_per_node

    def of(self, accelerators: int | None) -> Cluster:
        """So many accelerators, in nodes of the same size; None: the cluster itself."""
        if accelerators is None:
            return self.cluster
        if accelerators <= self.node_size:
            return replace(self.cluster, num_nodes=1, accelerators_per_node=accelerators)
        nodes = -(-accelerators // self.node_size)
        return replace(self.cluster, num_nodes=nodes, accelerators_per_node=self.node_size)

    def larger(self, times: int) -> tuple[int, ...]:
        """Numbers of accelerators, up to so many times the cluster: within the node, then in whole nodes, many at a time
        where the cluster has very many.

        None of what comes alone or in slices, and none where `--on` would read the cluster's name as something else: an
        accelerator of a file, or of this computer.
        """
        size, each = self.cluster.size, self.node_size
        if self.come_alone or not self._has_a_name():
            return ()
        nodes = max(size // each, 1)
        whole = range((size // each + 1) * each, times * max(each, size) + 1, each * -(-nodes // times))
        return (*doublings(2 * size, each - 1), *whole)

    def _has_a_name(self) -> bool:
        try:
            return cluster_named(self.cluster.accelerator.name).accelerator == self.cluster.accelerator
        except TonnageError:
            return False
