"""Parses clusters: "h100", "8xH100-SXM-80GB", "16x8xH100-SXM-80GB", "4xdgx-h100", "my.toml", "local"."""

import math
import re
from pathlib import Path

from msgspec.structs import replace

from tonnage.catalogue import toml_files
from tonnage.catalogue.accelerators import KINDS, accelerator_names
from tonnage.catalogue.accelerators import accelerator as accelerator_named
from tonnage.catalogue.accelerators import load as load_accelerator
from tonnage.catalogue.nodes import find as find_node
from tonnage.catalogue.nodes import load as load_node
from tonnage.catalogue.nodes import node as node_named
from tonnage.catalogue.nodes import node_names
from tonnage.catalogue.products import accelerator_of, others_of
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.message import OR, Message, listed
from tonnage.kernel.reach import allowed_file, check_machine, is_file, reads_files
from tonnage.kernel.registry import nearest, unknown
from tonnage.kernel.units import counted
from tonnage.spec import Accelerator, Cluster, Node

LARGEST = 10_000_000  # accelerators; the largest cluster built holds a few hundred thousand
BOX = 8  # accelerators of a machine of unknown kind: as in the catalogue's servers of PCIe cards
# How names of phones, tablets and their chips begin.
PHONES: tuple[str, ...] = (
    "iphone",
    "ipad",
    "pixel",
    "galaxys",
    "galaxy-s",
    "oneplus",
    "xiaomi",
    "redmi",
    "oppo",
    "vivo",
    "honor",
)
PHONES += ("snapdragon-8", "dimensity", "exynos", "tensor-g", "apple-a", "huawei-mate", "huawei-pura", "android")
EXAMPLES = ("h100", "8xh100", "dgx-h100", "rtx-4090", "local")  # where no name is near
A_MACHINE = "give a machine's name, as in 8xH100-SXM-80GB"  # where no file may be read
_SLICE = r"(?i:(?:tpu[\s-]?)?(v[2-4]|v5p|v5e|v5litepod|v6e|v7x?|(?<=tpu)7x)-(\d{1,5}))"
_TPUS = {"v5litepod": "v5e", "7x": "v7", "v7x": "v7"}  # as Google's slices are called -> as the accelerator is
_CORES_OF_SLICES = {"v5e": 1, "v5litepod": 1, "v6e": 1}  # what a slice's number counts for each chip; two of others
MAX_NAME = 4096  # characters of a cluster's name, which may be a path


def cluster(text: str) -> Cluster:
    """Return the Cluster that a text names, written as nodes x accelerators x name: "h100", "8xh100", "4x8xh100".

    The name is an accelerator's or node's of the catalogue, an instance's, "local" for this machine, or a TOML file.
    """
    if not isinstance(text, str):
        raise InvalidInput("a cluster is given by a name such as 8xH100-SXM-80GB. Got {text}.", text=shown(text))
    if len(text) > MAX_NAME:
        raise InvalidInput(
            "a cluster's name has at most {longest:,} characters. Got {text}.", longest=MAX_NAME, text=shown(text)
        )
    counts, name = _counts(text)
    if name == "local":
        from tonnage.catalogue.local import local_cluster

        check_machine()
        if counts:
            raise InvalidInput("'local' is this machine and takes no count. Got {text}.", text=shown(text))
        return local_cluster()
    accelerator, node = _named(name)
    if node is not None:
        return _of_nodes(text, counts, node, accelerator)
    return replace(_of_accelerators(text, counts, accelerator), note=_left_open(name, accelerator))


def names_cluster(text: str) -> bool:
    """Whether `cluster` takes a text; what is nearest to a name that it does not know is not looked for."""
    try:
        _, name = _counts(text)
        return (name == "local" or _found(name) is not None) and bool(cluster(text))
    except TonnageError:
        return False


def says_how_many(text: str) -> bool:
    """Whether a text states the number of accelerators: by a number, or by naming a node or this machine; `h100` does
    not.
    """
    counts, name = _counts(text)
    return bool(counts) or name == "local" or _named(name)[1] is not None


def parts(text: str) -> tuple[list[int], Accelerator, Node | None]:
    """The counts of a name (empty where it has none), its accelerator, and its node where it names one."""
    if len(text) > MAX_NAME:
        raise InvalidInput(
            "a cluster's name has at most {longest:,} characters. Got {text}.", longest=MAX_NAME, text=shown(text)
        )
    counts, name = _counts(text)
    return counts, *_named(name)


def _left_open(name: str, assumed: Accelerator) -> str:
    """A note on the other memory sizes of an accelerator that was named without one."""
    size = re.compile(r"-?[0-9]+gb", re.IGNORECASE)
    bare = toml_files.key(size.sub("", assumed.name))
    if size.search(name) or ":" in name or bare == toml_files.key(assumed.name):
        return ""
    others = others_of(name) or [
        name_of_other
        for name_of_other in accelerator_names()
        if toml_files.key(name_of_other) != toml_files.key(assumed.name)
        and toml_files.key(size.sub("", name_of_other)) == bare
        and size.search(name_of_other)
    ]
    return (
        Message(
            "'{name}' is ambiguous; assuming {taken}, not {others}.",
            name=name,
            others=listed(others, OR),
            taken=assumed.name,
        )
        if others
        else ""
    )


def _counts(text: str) -> tuple[list[int], str]:
    """Cut "16x8xNAME" into [16, 8] and NAME. "NAME:8", as schedulers write it, "8 NAME" and "NAMEx8" are [8] and
    NAME.
    """
    rest, counts = text.strip().replace("×", "x").replace("*", "x"), []
    while True:
        number, separator, after = rest.partition("x")
        if not (separator and after and number.strip().isdecimal()):
            break
        counts.append(_count(number.strip(), text))
        rest = after.strip()
    if not counts:
        counts, rest = _one_count(rest, text)
    if len(counts) < 2 and (tpu_slice := _slice(rest)):
        chips, rest = tpu_slice
        counts = [math.prod(counts) * chips]
    if not rest:
        raise InvalidInput("a cluster is written like 8xH100-SXM-80GB. Got {text}.", text=shown(text))
    if any(number < 1 for number in counts):
        raise InvalidInput("a cluster needs at least one node and one accelerator. Got {text}.", text=shown(text))
    if len(counts) > 2:
        raise InvalidInput(
            "a cluster is nodes x accelerators x name, as in 16x8xH100-SXM-80GB. Got {text}.", text=shown(text)
        )
    return counts, rest


def _slice(name: str) -> tuple[int, str] | None:
    """The chips of a slice of TPUs by Google's name, as in "v5litepod-16" or "v5p-128", and their accelerator; or None.

    The number counts chips on v5e and v6e, and cores, two a chip, on the others (docs.cloud.google.com/tpu/docs).
    """
    match = re.fullmatch(_SLICE, name) if name[:1] in "vVtT" and name[-1:].isdecimal() else None
    if match is None or toml_files.find("nodes", name):
        return None
    kind, number = match[1].lower(), int(match[2])
    each = _CORES_OF_SLICES.get(kind, 2)
    if number < each or number % each:
        return None
    return number // each, f"tpu-{_TPUS.get(kind, kind)}"


def _count(digits: str, text: str) -> int:
    if len(digits) > len(str(LARGEST)):
        raise _too_many(text)
    return int(digits)


def _too_many(text: str) -> InvalidInput:
    return InvalidInput(
        "a cluster may have from 1 to {largest:,} accelerators. Got {text}.", largest=LARGEST, text=shown(text)
    )


def _one_count(name: str, text: str) -> tuple[list[int], str]:
    """Parse the other spellings of a count beside a name; a name that looks like one of them has precedence."""
    if _known(name):
        return [], name
    before, separator, after = name.rpartition(":")
    if separator and after.isdecimal():
        return [_count(after, text)], before
    before, separator, after = name.partition(" ")
    if separator and before.isdecimal() and not after.strip().isdecimal():
        return [_count(before, text)], after.strip()
    before, separator, after = name.rpartition("x")
    if separator and after.strip().isdecimal() and _known(before.strip()):
        return [_count(after.strip(), text)], before.strip()
    return [], name


def _known(name: str) -> bool:
    """Whether an accelerator or a node has this name."""
    return bool(toml_files.find("accelerators", name) or find_node(name) or (":" not in name and _known_spelling(name)))


def _known_spelling(name: str) -> str:
    """The catalogue's name of what is spelt in another way; "" for none. Looked for only where no name is found."""
    from tonnage.catalogue.spellings import known_spelling

    return known_spelling(name)


def _named(name: str) -> tuple[Accelerator, Node | None]:
    found = _found(name)
    if found is None:
        raise _unknown_name(name)
    return found


def _found(name: str) -> tuple[Accelerator, Node | None] | None:
    """The accelerator of a name, and the node where it names one; None for a name that nothing has."""
    if name.endswith(".toml") and reads_files() and is_file(allowed_file(name, A_MACHINE)):
        return _user_file(allowed_file(name, A_MACHINE))
    chip = name.partition(":")[0]
    if toml_files.find("accelerators", chip) or toml_files.key(chip) in accelerator_names():
        return accelerator_named(name), None
    if find_node(name):
        node = node_named(name)
        return accelerator_named(node.accelerator), node
    if product := accelerator_of(name):
        return accelerator_named(product), None
    if spelling := _known_spelling(name):
        return _found(spelling)
    if name.endswith(".toml") or any(separator in name for separator in "/\\"):
        allowed_file(name, A_MACHINE)  # raises where no file may be named
        raise InvalidInput(
            "there is no file {name}. A cluster is a name, as in 8xH100-SXM-80GB, or a TOML file of "
            "yours (docs/catalogue.md).",
            name=shown(name, 300),
        )
    return None


def _unknown_name(name: str) -> TonnageError:
    """The error for a name of no accelerator, with what is nearest to it."""
    from tonnage.catalogue.families import family_error, is_family

    if name.isdecimal():
        return InvalidInput(
            "a number alone names no accelerator: write {example}. Got {name}.",
            example=f"{name}xH100-SXM-80GB",
            name=shown(name),
        )
    if "," in name:
        return InvalidInput(
            "one machine is taken here, not several: `tonnage compare` and `tonnage plan` take a list. Got {name}.",
            name=shown(name),
        )
    if toml_files.key(name).startswith(PHONES):
        return InvalidInput(
            "phones and tablets are not estimated: nobody publishes what their systems leave to a program, or how fast "
            "it runs there. Got {name}. Nearest: apple-m4-16gb, snapdragon-x-elite, raspberry-pi-5.",
            name=shown(name),
        )
    known = [*accelerator_names(), *node_names()]
    aliases = [*toml_files.aliases("accelerators"), *toml_files.aliases("nodes")]
    if not nearest(name, [*known, *aliases]) or toml_files.key(name) in KINDS or is_family(name):
        family = family_error(name)
        if family is not None:
            return family
    return unknown("accelerator or node", name, known, aliases, examples=EXAMPLES, command="tonnage accelerators")


def nearest_clusters(text: str) -> tuple[str, ...]:
    """Clusters whose name may be meant by one that is not known, with the counts that it has."""
    counts, name = _counts(text)
    before = text[: text.rindex(name)] if name in text else ""
    kinds = ("accelerators",) if counts else ("accelerators", "nodes")
    known = [name for kind in kinds for name in (*toml_files.names(kind), *toml_files.aliases(kind))]
    found = (_named(near) for near in nearest(name, known))
    names = (accelerator.name if node is None else node.name for accelerator, node in found)
    return tuple(dict.fromkeys(f"{before}{name}" for name in names))


def _user_file(path: Path) -> tuple[Accelerator, Node | None]:
    if "accelerators" in toml_files.toml(path):
        node = load_node(path)
        return accelerator_named(node.accelerator), node
    return load_accelerator(path), None


def _of_nodes(text: str, counts: list[int], node: Node, accelerator: Accelerator) -> Cluster:
    if len(counts) > 1:
        raise InvalidInput(
            "{node} already has {accelerators}: write {counts}x{node}. Got {text}.",
            node=node.name,
            accelerators=counted(node.accelerators, "accelerators"),
            counts=counts[0],
            text=shown(text),
        )
    return _checked(text, accelerator, counts[0] if counts else 1, node.accelerators, node)


def _of_accelerators(text: str, counts: list[int], accelerator: Accelerator) -> Cluster:
    """A single number counts accelerators; those beyond one node of the accelerator's usual kind fill further nodes."""
    node = node_named(accelerator.default_node) if accelerator.default_node else None
    if len(counts) == 2:
        return _checked(text, accelerator, counts[0], counts[1], node)
    count = counts[0] if counts else 1
    if accelerator.scale_up and accelerator.scale_up.joins and node and count > node.accelerators:
        per_machine = BOX if count % BOX == 0 else count  # a machine of such cards has more than a bridge joins
        return _checked(text, accelerator, count // per_machine, per_machine, node)
    per_node = node.accelerators if node else count
    if count > per_node and count % per_node == 0:
        return _checked(text, accelerator, count // per_node, per_node, node)
    return _checked(text, accelerator, 1, count, node)


def _checked(text: str, accelerator: Accelerator, nodes: int, per_node: int, node: Node | None) -> Cluster:
    if nodes * per_node > LARGEST:
        raise _too_many(text)
    if node is not None and node.inside and 0 < node.inside.joins <= node.accelerators < per_node:
        # a larger machine than the usual one: only the links between and out of its cards are known
        node = Node(
            name=accelerator.name,
            accelerator=accelerator.name,
            accelerators=per_node,
            inside=node.inside,
            outside=node.outside,
        )
    return Cluster(accelerator=accelerator, num_nodes=nodes, accelerators_per_node=per_node, node=node)
