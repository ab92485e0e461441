"""`accelerators`: the catalogue of accelerators and nodes, and one of them in detail."""

from msgspec import structs

from tonnage import catalogue
from tonnage.catalogue.accelerators import accelerator_aliases
from tonnage.catalogue.nodes import find as find_node
from tonnage.documents.catalogue import AcceleratorDocument, AcceleratorsDocument, NodeDocument
from tonnage.question.form import Given
from tonnage.spec import Accelerator, Node
from tonnage.verbs.answered import Answered


def describe(hardware: Accelerator | Node) -> AcceleratorDocument | NodeDocument:
    """The document about one of them; an accelerator says its own kind: gpu, tpu, ..."""
    if isinstance(hardware, Node):
        return NodeDocument(kind="node", **structs.asdict(hardware))
    return AcceleratorDocument(**structs.asdict(hardware))


def named(name: str) -> Accelerator | Node:
    if name == "local":
        return catalogue.cluster("local").accelerator
    machine = catalogue.cluster(name)  # also reads a user's TOML
    return machine.node if machine.node is not None and find_node(name) else machine.accelerator


def listed() -> AcceleratorsDocument:
    """The catalogue of accelerators and nodes."""
    return AcceleratorsDocument(
        accelerators=[catalogue.accelerator(name) for name in catalogue.accelerator_names()],
        nodes=[catalogue.node(name) for name in catalogue.node_names()],
        aliases=accelerator_aliases(),
    )


def answer(arguments: Given) -> Answered:
    """One accelerator or node in detail, or the catalogue where none is named."""
    return Answered(listed() if arguments.name is None else describe(named(arguments.name)))
