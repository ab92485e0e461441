"""The machines that torchrun, deepspeed and the environment name, and what the environment says of the allocator."""

import re

from tonnage.interchange.parts.launching.training import HARMLESS, TORCHRUN
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput

ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
ENVIRONMENT = ("CUDA_VISIBLE_DEVICES", *ALLOCATOR)


def count_machines(r: Reading) -> None:
    """The machines that torchrun or deepspeed is told of, or that the environment leaves visible."""
    nodes, per_node = _nodes(r), 0
    for key in ("nproc_per_node", "num_gpus", "num_accelerators"):
        if r.has(key) and r.text(key) not in ("gpu", "auto", "-1"):
            per_node = r.positive(key)
        r.put("on", None, key)
    if r.has("include") and r.text("include"):
        hosts, slots = _included(r)
        nodes, per_node = nodes or hosts, per_node or slots
        r.put("on", None, "include")
    if r.has("hostfile"):
        nodes, per_node = _hosts(r, nodes, per_node)
    visible = r.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        per_node = per_node or len([one for one in str(visible).split(",") if one.strip()])
        r.put("on", None, "CUDA_VISIBLE_DEVICES")
    if r.text("program") == TORCHRUN and not r.has("nproc_per_node"):
        per_node = 1
        r.assume("nproc_per_node", 1, why="default of torchrun: one process")
    r.needs_default("exclude", "", why="which accelerators are left is not known: say them with --on")
    r.ignore(HARMLESS)
    put_machines(r, nodes, per_node)


def expands_segments(r: Reading) -> bool | None:
    """Whether the environment says that the allocator has expandable segments; None where it says nothing. Other
    settings of the allocator are not estimated.
    """
    expands = None
    for key in ALLOCATOR:
        if not r.has(key):
            continue
        parts = [part for part in r.text(key).replace(" ", "").lower().split(",") if part]
        expands = "expandable_segments:true" in parts
        if all(part.startswith("expandable_segments:") for part in parts):
            r.put("expandable_segments", None, key)
        else:
            r.unsure(key, "how it changes the allocator is not estimated")
    return expands


def put_machines(r: Reading, nodes: int, per_node: int) -> None:
    """Count the machines. InvalidInput for several nodes of which nobody says how many accelerators each has."""
    machine = r.asker.on or r.machines.accelerator
    if nodes > 1 and not (per_node or r.machines.per_node or machine.partition("x")[0].isdecimal()):
        raise InvalidInput(
            "{file} names {nodes} nodes, and not how many accelerators each has: say it with --on, such as --on "
            "{nodes}x8xh100.",
            file=r.source.name,
            nodes=nodes,
        )
    if nodes or per_node:
        r.count_machines(nodes=nodes, per_node=per_node)


def _nodes(r: Reading) -> int:
    nodes = 0
    if r.has("nnodes"):
        least, colon, _ = r.text("nnodes").partition(":")
        if colon:
            r.values["nnodes"] = least
            nodes = r.positive("nnodes")
            r.unsure("nnodes", "the number of nodes may change: the least is estimated")
        else:
            nodes = r.positive("nnodes")
            r.put("on", None, "nnodes")
    if r.has("num_nodes"):
        nodes = nodes if r.text("num_nodes") == "-1" else r.positive("num_nodes")
        r.put("on", None, "num_nodes")
    return nodes


def _included(r: Reading) -> tuple[int, int]:
    """Nodes and accelerators of each: `worker-0@worker-1:0,2`. Zero accelerators: all of a node."""
    slots = []
    for host in r.text("include").split("@"):
        _, colon, listed = host.partition(":")
        slots.append(len([one for one in listed.split(",") if one.strip()]) if colon else 0)
    if len(set(slots)) > 1:
        raise r.wrong("include", "the same number of accelerators on every node")
    return len(slots), slots[0]


def _hosts(r: Reading, nodes: int, per_node: int) -> tuple[int, int]:
    """Nodes and accelerators of each, where the hostfile can be read: `worker-1 slots=8`."""
    try:
        text = r.source.sibling(r.text("hostfile")).text
    except InvalidInput:
        if nodes and per_node:
            r.put("on", None, "hostfile")
        else:
            r.unsure("hostfile", "the file cannot be read here: say the machines with --on")
        return nodes, per_node
    slots = [int(number) for number in re.findall(r"^\s*[^#\s]\S*\s+slots\s*=\s*(\d{1,4})", text, re.MULTILINE)]
    if len(set(slots)) > 1:
        raise InvalidInput("{file}: every node must have as many slots.", file=r.text("hostfile"))
    r.put("on", None, "hostfile")
    return (nodes or len(slots), per_node or slots[0]) if slots else (nodes, per_node)
