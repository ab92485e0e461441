"""The machine of a row: one node of the accelerator that it names, a rack of those that come in racks, or nodes of
eight.
"""

import re

from rows.serving_speed.run import Run, Source
from rows.training.machines import NAMES, UNKNOWN, accelerator_of
from tonnage.catalogue import accelerator
from tonnage.catalogue.nodes import node as node_named
from tonnage.kernel.errors import MissingDatum, shown
from tonnage.spec import Accelerator, Cluster

RACKS = ("GB200-186GB", "GB300-288GB")  # 72 in one domain of the fast link
NODE_SIZE = 8


def cluster_of(run: Run, source: Source) -> Cluster:
    """As many accelerators as the run has, in nodes with the links of the catalogue's usual ones."""
    chip = _chip(run, source)
    gpus = run.gpus or run.ranks
    each = gpus if gpus <= NODE_SIZE or chip.name in RACKS or chip.kind != "gpu" else NODE_SIZE
    if gpus % each:
        raise MissingDatum(
            f"{gpus} accelerators are no whole nodes of {each}, and the row does not say how they are spread"
        )
    node = node_named(chip.default_node) if chip.default_node else None
    return Cluster(accelerator=chip, num_nodes=gpus // each, accelerators_per_node=each, node=node)


def _chip(run: Run, source: Source) -> Accelerator:
    text = str(run.config.find(*NAMES)[1] or "")
    for pattern, name in source.accelerators.items():
        if re.search(pattern, text, re.IGNORECASE):
            return accelerator(name)
    chip, note = accelerator_of(run.config)
    if chip.name == UNKNOWN or chip.memory.bytes_per_second is None:
        raise MissingDatum(f"the row names no accelerator whose speed is known. Got {shown(text)}.")
    if note:
        run.guess("on", note)
    return chip
