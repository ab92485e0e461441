"""The machine of a row: accelerators in nodes that have links, as its text, its source or the catalogue's usual node
gives them.
"""

import re

from msgspec.structs import replace

from rows.speed.run import Run, Source
from rows.training.machines import COUNTS, NAMES, NODES, UNKNOWN, accelerator_of
from tonnage.catalogue import accelerator
from tonnage.catalogue.nodes import node as node_named
from tonnage.kernel.errors import MissingDatum, shown
from tonnage.spec import Accelerator, Cluster, Link, Node

RACKS = {"GB200-186GB": 72, "GB300-288GB": 72}  # accelerators of one NVLink domain, 4 a tray
DOMAINS = (
    64,
    32,
    16,
    8,
    4,
)  # ranks that a layout puts into one: 64 of 72 where more are used, as expert parallelism of 64 needs
NODE_SIZE = 8  # DGX and HGX, p4d, p5, a3
TRAY = re.compile(r"(\d+(?:\.\d+)?) GiB is (\d+(?:\.\d+)?)% of")
GB200_SHOWS = (178, 190)  # GiB that a driver shows of 186 or 192 GB
BITS = 8
USUAL = 1024  # accelerators of a run whose hours alone are published
# Machines whose links are those of another: what its own name says decides first.
LIKE = {"H100-SXM-96GB": "dgx-h100", "H100-SXM-80GB": "dgx-h100", "H200-SXM-141GB": "dgx-h200"}


def cluster_of(run: Run, source: Source, count: int) -> Cluster:
    """The row's machine. `count`: of accelerators where the row does not say it and its figure is about one; 0: then
    it is an error.
    """
    chip = _chip(run, source)
    gpus = _count(run) or count
    if not gpus and "hours" in run.row.measured.unit.lower():
        gpus = USUAL
        run.guess("on", f"{USUAL:,} accelerators are guessed: their hours hardly depend on it")
    if not gpus:
        raise MissingDatum("the row does not say how many accelerators it ran on")
    each = _per_node(run, chip, gpus)
    run.accelerator, run.gpus, run.memory = chip.name, gpus, chip.memory.usable_bytes
    return Cluster(
        accelerator=chip,
        num_nodes=gpus // each,
        accelerators_per_node=each,
        node=_linked(run, _node(chip), gpus // each),
    )


def _chip(run: Run, source: Source) -> Accelerator:
    text = str(run.config.find(*NAMES)[1] or "")
    if found := re.search(r"\bv(\d)(p?)-\d+", text):  # "1x v5p-128"
        return accelerator(f"TPU-v{found[1]}{found[2]}")
    share = TRAY.search(text)
    if share and float(share[2]) and GB200_SHOWS[0] < 100 * float(share[1]) / float(share[2]) < GB200_SHOWS[1]:
        run.guess("on", f"{text}: a GB200 is taken, which four a tray and this memory are of")
        return accelerator("GB200-186GB")
    if source.accelerator and text:
        named = accelerator_of(run.config)[0]
        return (
            accelerator(source.accelerator) if named.generation == accelerator(source.accelerator).generation else named
        )
    chip, note = accelerator_of(run.config)
    if note:
        run.guess("on", note)
    if " of " in chip.name and "NIC" in text:  # the reader of memory's rows takes "8x200G NIC" for a memory of 200 GB
        chip = accelerator(chip.name.partition(" of ")[0])
    if chip.name == UNKNOWN or not chip.dense_flops:
        raise MissingDatum(f"the row names no accelerator whose speed is known. Got {shown(text)}")
    return chip


def _count(run: Run) -> int:
    name, value = run.config.find(*COUNTS)
    if isinstance(value, str) and (found := re.match(r"(\d+)\s*-\s*(\d+)", value)):
        run.guess("on", f"{name} {value}: the smallest is taken")
        return int(found[1])
    return run.config.size(*COUNTS) or 0


def _per_node(run: Run, chip: Accelerator, gpus: int) -> int:
    """Accelerators of one domain of the fast link."""
    nodes = run.config.size(*NODES)
    if nodes and gpus % nodes == 0:
        return gpus // nodes
    if chip.name in RACKS:
        return next((size for size in DOMAINS if gpus % size == 0), gpus)
    if chip.kind == "tpu":
        return gpus  # the torus goes on through the whole slice
    return NODE_SIZE if gpus % NODE_SIZE == 0 else gpus


def _node(chip: Accelerator) -> Node | None:
    name = LIKE.get(chip.name) or chip.default_node
    return node_named(name) if name else None


def _linked(run: Run, node: Node | None, nodes: int) -> Node | None:
    """The same node, with the network that the row names: "400 Gb/s RDMA per GPU", "8x200G NIC", "2 Tb/s RoCE per
    node".
    """
    text = f"{run.config.find(*NAMES)[1]} {run.config.find('network', 'interconnect')[1]}"
    bits = network_bits(text)
    if node is None or nodes == 1 or not bits:
        return node
    link = node.outside or Link(name="network", bytes_per_second=0)
    return replace(node, outside=replace(link, name=f"{bits / 1e9:g} Gb/s", bytes_per_second=bits / BITS))


def network_bits(text: str) -> float:
    """Bits per second of one accelerator's part of the network; 0: not said."""
    if found := re.search(
        r"(\d+)\s*Gb/s (?:RDMA|CX-?\d|InfiniBand|RoCE)?[^,;]*per GPU|(\d+)\s*Gb/s [^,;]*per GPU", text, re.IGNORECASE
    ):
        return float(found[1] or found[2]) * 1e9
    if found := re.search(r"(\d+)x(\d+)G NIC", text):
        return float(found[1]) * float(found[2]) * 1e9 / NODE_SIZE
    if found := re.search(r"(\d+(?:\.\d+)?)\s*Tb/s [^,;]*per node", text, re.IGNORECASE):
        return float(found[1]) * 1e12 / NODE_SIZE
    return 0.0
