"""The machine of a row of collectives: its text -> a cluster of the catalogue, with the network that the text names."""

import re
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from rows.training.config import Config
from rows.training.machines import accelerator_name, split_words
from tonnage.catalogue import accelerator, accelerator_names, aliases, node, node_names
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.spec import Accelerator, Cluster, Link, Node

LARGEST = 10_000_000  # accelerators
PROVIDERS = {"oci": "Oracle", "oracle": "Oracle", "aws": "AWS", "efa": "AWS", "azure": "Azure", "gcp": "Google Cloud"}
# "EFA 3200 Gbps per node", "4x200Gb IB per node", "8 nodes x 8 V100, one 100G IB"
_NETWORK = re.compile(
    r"(?:(?P<name>efa|ib|infiniband|roce)\s+)?(?:(?P<count>\d+)\s*x\s*)?(?P<rate>\d+)\s*g(?:b|bps|bit|bit/s)?\b\s*(?P<after>efa|ib|infiniband|roce)?"
)
_NETWORKS = {"efa": "EFA", "ib": "InfiniBand", "infiniband": "InfiniBand", "roce": "RoCE"}


class Machine(Struct, frozen=True, eq=False):
    """A cluster, how many ranks take part, and what was assumed about it."""

    cluster: Cluster
    ranks: int
    notes: tuple[str, ...] = ()


def machine_of(config: Config) -> Machine:
    """The row's machine; MissingDatum where it names no accelerator, or no network although it has several nodes."""
    return _machine(config.text("hardware", "gpu"), config.size("gpus") or 1, config.size("nodes") or 1)


@cache
def _machine(text: str, gpus: int, nodes: int) -> Machine:
    if not 1 <= nodes <= gpus <= LARGEST or gpus % nodes:
        raise InvalidInput(f"config: {gpus} gpus are not dealt evenly over {nodes} nodes.")
    chip, named = _accelerator_and_node(text)
    provided = named or _of_provider(text, chip)
    domain = provided or (node(chip.default_node) if chip.default_node else None)
    if domain and domain.accelerators >= gpus and domain.inside:
        return _in_one_domain(chip, domain, gpus)
    if nodes == 1:
        return _in_one_domain(chip, None, gpus)
    network = stated_network(text, gpus // nodes) or (provided.outside if provided else None)
    if network is None:
        raise MissingDatum(f"config.hardware names no network between the {nodes} nodes. Got {shown(text)}.")
    inside = (domain.inside if domain else None) or chip.scale_up
    made = Node(
        name=domain.name if domain else chip.name,
        accelerator=chip.name,
        accelerators=gpus // nodes,
        inside=inside,
        outside=network,
    )
    notes = (f"{provided.name}'s network: {network.name}",) if provided and provided.outside is network else ()
    return Machine(
        Cluster(accelerator=chip, num_nodes=nodes, accelerators_per_node=gpus // nodes, node=made), gpus, notes
    )


def _in_one_domain(chip: Accelerator, domain: Node | None, gpus: int) -> Machine:
    link = (domain.inside if domain else None) or chip.scale_up or chip.host_link
    if link and 0 < link.joins < gpus:
        raise MissingDatum(f"bridges join at most {link.joins} of {chip.name}, and no source says what joins {gpus}")
    made = replace(domain, accelerators=gpus) if domain else None
    return Machine(Cluster(accelerator=chip, accelerators_per_node=gpus, node=made), gpus)


def named_accelerator(text: str) -> Accelerator:
    """The catalogue's accelerator that a text names."""
    name = accelerator_name(text.lower())
    if name is None:
        raise MissingDatum(f"config.hardware names no accelerator of the catalogue. Got {shown(text)}.")
    return accelerator(name)


def _accelerator_and_node(text: str) -> tuple[Accelerator, Node | None]:
    """A node that the text names by all words of its name or alias, and its accelerator."""
    said = set(split_words(text.lower()))
    found = [(len(words), name) for words, name in _nodes() if words <= said]
    chip_named = accelerator_name(text.lower())
    for _, name in sorted(found, reverse=True):
        made = node(name)
        if (
            chip_named is None
            or accelerator(chip_named).generation == accelerator(_canonical(made.accelerator)).generation
        ):
            return accelerator(_canonical(made.accelerator)), made
    return named_accelerator(text), None


def _of_provider(text: str, chip: Accelerator) -> Node | None:
    """The cloud that the text names, where it has one kind of whole node of this accelerator: its smaller instances
    are parts of that one.
    """
    providers = {PROVIDERS[word] for word in split_words(text.lower()) if word in PROVIDERS}
    fitting = [
        each
        for name in (node_names() if providers else ())
        if (each := node(name)).provider in providers and _canonical(each.accelerator) == chip.name
    ]
    most = max((each.accelerators for each in fitting), default=0)
    whole = [each for each in fitting if each.accelerators == most]
    return whole[0] if whole and len({each.outside for each in whole}) == 1 else None


def stated_network(text: str, per_node: int) -> Link | None:
    """The network that the text states in Gb/s for each node: its share for each accelerator."""
    for found in _NETWORK.finditer(text.lower()):
        name = found["name"] or found["after"]
        if name:
            rate = int(found["count"] or 1) * int(found["rate"]) * 1e9 / 8 / per_node
            return Link(name=_NETWORKS[name], bytes_per_second=rate, topology=found[0].strip())
    return None


def _canonical(name: str) -> str:
    return accelerator(name).name


@cache
def _nodes() -> tuple[tuple[frozenset[str], str], ...]:
    """Words of each name and alias of a node that has a letter and a digit or several words: "p5" alone is one, "a3"
    too.
    """
    pairs = [(name, name) for name in node_names()] + list(aliases("nodes").items())
    chips = {frozenset(split_words(name.lower())) for name in (*accelerator_names(), *aliases("accelerators"))}
    made = ((frozenset(split_words(alias.lower())), name) for alias, name in pairs)
    return tuple((words, name) for words, name in made if words not in chips)
