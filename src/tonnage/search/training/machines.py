"""Which machines are searched: those that are named, how many of an accelerator that is named without a number, or
the whole catalogue.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from tonnage.catalogue import accelerator, accelerator_names, cluster
from tonnage.catalogue.clusters import says_how_many
from tonnage.estimate.options.machine import is_slice
from tonnage.estimate.run.larger_machines import Machines, doublings
from tonnage.kernel.errors import InvalidInput
from tonnage.spec import Accelerator, Cluster

MAX_ACCELERATORS = 4096  # accelerators, where nobody says how many there may be
OF_CATALOGUE = (
    "NVIDIA",
    "AMD",
)  # whose GPUs are looked at where nobody names any: those that the runtimes were measured on, and their kin


class Fleet(Struct, frozen=True, kw_only=True, eq=False):
    """Machines of one accelerator, the smallest first. `is_open`: their number was not given, so others between them
    may do as well.
    """

    machines: tuple[Cluster, ...]
    is_open: bool

    @property
    def accelerator(self) -> Accelerator:
        return self.machines[0].accelerator


def fleets(on: Sequence[str], most: int | None = None) -> list[Fleet]:
    """The machines that `on` names, of at most `most` accelerators each; all of the catalogue's where it names none."""
    if most is not None and most < 1:
        raise InvalidInput("{@max_accelerators} must be at least 1. Got {most}.", most=most)
    listed_fleets = [_fleet(name, most) for name in dict.fromkeys(on)] if on else list(_of_catalogue(most))
    left = list(
        {tuple(machine.name for machine in fleet.machines): fleet for fleet in listed_fleets if fleet.machines}.values()
    )
    if not left:
        smallest = min(cluster(name).size for name in on)
        raise InvalidInput(
            "{@max_accelerators} must be at least {smallest}, the smallest of the machines that are named. Got {most}.",
            smallest=smallest,
            most=most,
        )
    return left


def _fleet(name: str, most: int | None) -> Fleet:
    if says_how_many(name):
        one = cluster(name)
        return Fleet(machines=(one,) if most is None or one.size <= most else (), is_open=False)
    return Fleet(machines=tuple(_sizes(name, most or MAX_ACCELERATORS)), is_open=True)


def _sizes(name: str, most: int) -> Iterator[Cluster]:
    """Parts of a node, then whole nodes, doubled."""
    one = cluster(name)
    node_size, named = Machines(one).node_size, one.accelerator.name
    if Machines(one).come_alone:
        yield one
        return
    if one.node is None:  # no source knows what would join several machines of it
        most = min(most, node_size)
    for count in (
        *doublings(1, node_size - 1),
        *(node_size * nodes for nodes in doublings(1, max(most // node_size, 0))),
    ):
        if count <= most:
            yield cluster(f"{count}x{named}")


def between(smaller: Cluster, larger: Cluster, at_most: int = 64) -> list[Cluster]:
    """Whole nodes between two machines of a fleet, so many of them at most, evenly spread."""
    node_size = larger.accelerators_per_node
    counts = list(range(smaller.size // node_size + 1, larger.num_nodes))
    step = -(-len(counts) // at_most) or 1
    name = (
        larger.node.name if larger.node and not larger.is_part_of_node and larger.node.accelerators == node_size else ""
    )
    return [
        cluster(f"{nodes}x{name}" if name else f"{nodes}x{node_size}x{larger.accelerator.name}")
        for nodes in counts[::step]
    ]


def _of_catalogue(most: int | None) -> Iterator[Fleet]:
    for name in accelerator_names():
        chip = accelerator(name)
        known = {"bf16", "fp16"} & set(chip.dense_flops) and chip.memory.bytes_per_second is not None
        if chip.kind == "gpu" and chip.vendor in OF_CATALOGUE and known and not is_slice(chip):
            yield _fleet(chip.name, most)
