"""Where a cell is asked: a cluster that was said, or as many accelerators of a kind as the question takes."""

from collections.abc import Iterator

from msgspec import Struct

from tonnage.catalogue.clusters import cluster, says_how_many
from tonnage.spec import Cluster

FEWEST = "fewest"
DEFAULT_NODE_SIZE = 8  # accelerators of a machine of which no usual kind is known
ALONE = ("apple", "cpu")  # machines of which people have one


class MachineOption(Struct, frozen=True, kw_only=True):
    """One value of `on`. `one`: the cluster, or one accelerator where `open` says that their number is."""

    label: str
    one: Cluster
    open: bool
    made: dict[int, Cluster] = {}

    def of(self, accelerators: int) -> Cluster:
        """So many of them; those beyond a node are whole nodes of the usual kind."""
        if accelerators not in self.made:
            self.made[accelerators] = self.one if accelerators == 1 else cluster(f"{accelerators}x{self.label}")
        return self.made[accelerators]

    @property
    def node_size(self) -> int:
        """The number of accelerators in its usual machine."""
        if ":" in self.label or self.one.accelerator.kind in ALONE:  # a slice has no link to another
            return 1
        return self.one.node.accelerators if self.one.node else DEFAULT_NODE_SIZE

    def counts(self) -> Iterator[int]:
        """Numbers of accelerators in one machine, that halve it or halve a half."""
        size = 1
        while size < self.node_size:
            yield size
            size *= 2
        yield self.node_size

    @property
    def joins(self) -> bool:
        """Whether it is known how its machines are joined."""
        return self.one.node is not None and self.node_size > 1 and self.one.node.outside is not None


def place(on: str | Cluster) -> MachineOption:
    """A value of `on`; UnknownName for what no catalogue knows."""
    if isinstance(on, Cluster):
        return MachineOption(label=on.name, one=on, open=False)
    return MachineOption(label=on.strip(), one=cluster(on.strip()), open=not says_how_many(on.strip()))
