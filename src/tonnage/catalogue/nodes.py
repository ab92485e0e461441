"""The catalogue of nodes: catalogue/nodes/*.toml -> Node. A node is also a name for a cluster: "dgx-h100",
"4xdgx-h100".
"""

from pathlib import Path

from msgspec import Struct

from tonnage.catalogue import accelerators, toml_files
from tonnage.catalogue.accelerators import LinkForm
from tonnage.catalogue.toml_files import Source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import called
from tonnage.kernel.units import GIB
from tonnage.spec import Fact, Node

LARGEST = 65_536  # accelerators in one node; the largest scale-up domain sold, a TPU v7 pod, has 9216


class NodeFile(Struct, forbid_unknown_fields=True):
    """The form of a file; docs/catalogue.md explains each key."""

    name: str
    accelerator: str
    accelerators: int
    sources: dict[str, Source]
    aliases: list[str] = []
    accelerators_per_host: int | None = None
    inside: LinkForm | None = None
    outside: LinkForm | None = None
    host_memory_gib: float | None = None
    cpus: str = ""
    storage: str = ""
    provider: str = ""
    power_watts: float | None = None
    why: dict[str, str] = {}
    note: str = ""


def node(name: str) -> Node:
    """The node of this name or alias."""
    path = find(name)
    if path is None:
        raise toml_files.missing("nodes", "node", name)
    return load(path)


def find(name: str) -> Path | None:
    """The file of this node, the user's own first."""
    return toml_files.find("nodes", name)


def node_names() -> list[str]:
    """Names of all nodes, shipped and the user's own."""
    return toml_files.names("nodes")


def load(path: Path) -> Node:
    """Read one file, strictly."""
    form = toml_files.read(path, NodeFile)
    _check(form, called(path))
    memory = form.host_memory_gib
    return Node(
        name=form.name,
        accelerator=form.accelerator,
        accelerators=form.accelerators,
        accelerators_per_host=form.accelerators_per_host,
        inside=accelerators.link(form.inside),
        outside=accelerators.link(form.outside),
        host_memory_bytes=round(memory * GIB) if memory else None,
        cpus=form.cpus,
        storage=form.storage,
        provider=form.provider,
        power_watts=form.power_watts,
        sources={key: Fact(source=fact.source, as_of=fact.as_of) for key, fact in form.sources.items()},
        why=form.why,
        note=form.note,
    )


def _check(form: NodeFile, where: str) -> None:
    if not 1 <= form.accelerators <= LARGEST:
        raise InvalidInput(
            "{where}: accelerators must be from 1 to {largest:,}. Got {accelerators}.",
            where=where,
            largest=LARGEST,
            accelerators=shown(form.accelerators),
        )
    per_host = form.accelerators_per_host
    if per_host is not None and not (1 <= per_host <= form.accelerators and form.accelerators % per_host == 0):
        raise InvalidInput(
            "{where}: accelerators_per_host must divide its {accelerators:,} accelerators. Got {each}.",
            where=where,
            accelerators=form.accelerators,
            each=shown(per_host),
        )
    accelerators.check(form.inside, Message("{where}: inside", where=where))
    accelerators.check(form.outside, Message("{where}: outside", where=where))
    toml_files.within(form.host_memory_gib, "gib", f"{where}: host_memory_gib")
    toml_files.within(form.power_watts, "watts", f"{where}: power_watts")
    facts = ("accelerators_per_host", "inside", "outside", "host_memory_gib", "power_watts")
    toml_files.sourced([fact for fact in facts if getattr(form, fact) is not None], form.sources, where)
