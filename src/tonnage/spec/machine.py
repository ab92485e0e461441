"""Accelerators, nodes and clusters, in base units."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import listed
from tonnage.kernel.units import counted, human


class Fact(Struct, frozen=True, kw_only=True):
    """Where a figure comes from, and the day on which that source said so."""

    source: str
    as_of: str


class Link(Struct, frozen=True, kw_only=True):
    """A way between two places: bytes per second in one direction, per accelerator. `joins`: how many accelerators
    it joins, fewer than a machine has (a bridge) or more (a torus through many hosts); 0: all of a node.
    `mesh_links`: links of each accelerator that lead straight to others, 0 where a switch is between them; `mesh`:
    how they lead there, "full" to each of the others, "cube" as in a DGX-1.
    """

    name: str
    bytes_per_second: float
    topology: str = ""
    joins: int = 0
    mesh: str = ""
    mesh_links: int = 0


class Memory(Struct, frozen=True, kw_only=True):
    """The memory of one accelerator.

    `reported_bytes` is what the driver shows, `runtime_bytes` the total that the runtime gives programs
    (cudaMemGetInfo, torch's total_memory), each None where nobody published it; `context_bytes` is what a process of
    PyTorch holds outside of its allocator; `system_bytes` is what the operating system keeps of a memory that processor
    and accelerator share.
    """

    nominal_bytes: int
    reported_bytes: int | None = None
    runtime_bytes: int | None = None
    context_bytes: int | None = None
    system_bytes: int = 0
    bytes_per_second: float | None = None
    kind: str = ""
    unified: bool = False

    @property
    def usable_bytes(self) -> int:
        """What a program can ask for: as the runtime gives it, else as the driver reports it, else nominal, less the
        system's part.
        """
        return (self.runtime_bytes or self.reported_bytes or self.nominal_bytes) - self.system_bytes

    @property
    def usable_from(self) -> Literal["runtime", "driver", "nominal"]:
        """Which of the three figures `usable_bytes` starts from."""
        if self.runtime_bytes:
            return "runtime"
        return "driver" if self.reported_bytes else "nominal"


class Accelerator(Struct, frozen=True, kw_only=True):
    """One accelerator as its runtime shows it: a GPU, one die of a package that shows two, a TPU chip, a MIG slice."""

    name: str
    vendor: str
    kind: str
    generation: str
    memory: Memory
    dense_flops: Mapping[str, float]
    sparse_flops: Mapping[str, float] = {}
    scale_up: Link | None = None
    host_link: Link | None = None
    tdp_watts: float | None = None
    default_node: str | None = None
    sources: Mapping[str, Fact] = {}
    why: Mapping[str, str] = {}
    variants: tuple[str, ...] = ()
    note: str = ""

    def peak(self, precision: str) -> float:
        """Dense FLOP/s in `precision`; MissingDatum where no source gives it: it is never a ratio of another."""
        if precision not in self.dense_flops:
            known = listed(self.dense_flops) or "none"
            raise MissingDatum(
                "no source gives the dense {precision} peak of {name}. Known precisions: {known}.",
                precision=precision,
                name=self.name,
                known=known,
            )
        return self.dense_flops[precision]

    def fact(self, path: str) -> Fact | None:
        """The source of a figure, looked up by the longest key that begins its dotted path."""
        parts = path.split(".")
        for end in range(len(parts), 0, -1):
            found = self.sources.get(".".join(parts[:end]))
            if found:
                return found
        return None


class Node(Struct, frozen=True, kw_only=True):
    """A machine, or a domain of machines joined by the scale-up link: what is inside, and what leads out of it.

    `accelerators_per_host`: of a domain, those that one operating system has; None: all.
    """

    name: str
    accelerator: str
    accelerators: int
    accelerators_per_host: int | None = None
    inside: Link | None = None
    outside: Link | None = None
    host_memory_bytes: int | None = None
    cpus: str = ""
    storage: str = ""
    provider: str = ""
    power_watts: float | None = None
    sources: Mapping[str, Fact] = {}
    why: Mapping[str, str] = {}
    note: str = ""


class Cluster(Struct, frozen=True, kw_only=True):
    """Equal accelerators in equal nodes. `note`: what a name left open, and how it was taken."""

    accelerator: Accelerator
    num_nodes: int = 1
    accelerators_per_node: int = 1
    node: Node | None = None
    note: str = ""

    def __repr__(self) -> str:
        usable = human(self.accelerator.memory.usable_bytes, "bytes")
        return f"<Cluster {self.name}: {counted(self.size, 'accelerators')} of {usable}>"

    @property
    def size(self) -> int:
        return self.num_nodes * self.accelerators_per_node

    @property
    def accelerators_per_host(self) -> int:
        """Those of a node that one operating system has: engines are started once on each host."""
        own = self.node.accelerators_per_host if self.node is not None else None
        return min(own or self.accelerators_per_node, self.accelerators_per_node)

    @property
    def num_hosts(self) -> int:
        return self.num_nodes * -(-self.accelerators_per_node // self.accelerators_per_host)

    @property
    def is_part_of_node(self) -> bool:
        """Whether fewer accelerators are used than each node has."""
        return self.node is not None and self.accelerators_per_node < self.node.accelerators

    @property
    def name(self) -> str:
        parts = [str(self.num_nodes)] if self.num_nodes > 1 else []
        if self.accelerators_per_node > 1 or parts:
            parts.append(str(self.accelerators_per_node))
        return "x".join([*parts, self.accelerator.name])
