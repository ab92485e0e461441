"""Seconds until a replica's weights are on its accelerators: from disk into host memory, and over the host's links,
which overlap.
"""

from tonnage.estimate.host.storage import DRIVE_SOURCE, drives_of
from tonnage.estimate.serving.memory import ServingMemory
from tonnage.estimate.serving.weights.rank import as_stored
from tonnage.formulas import serving as g
from tonnage.formulas import storage as s
from tonnage.formulas import time as t
from tonnage.kernel.message import joined
from tonnage.kernel.term import Term
from tonnage.kernel.units import GB
from tonnage.spec import Cluster, ServingPlan

READ_RATE = 6.5 * GB  # of one drive, as DRIVE_SOURCE has it


def load_figures(
    memory: ServingMemory, plan: ServingPlan, cluster: Cluster, bandwidth: float | None = None
) -> dict[str, Term]:
    """`bandwidth` [bytes/s]: at which a node reads; None: that of its own drives. Nothing where neither is known."""
    rate = _reading(cluster, bandwidth)
    if rate is None:
        return {}
    ranks = plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.attention_data_parallel_size
    stored_weights = max(
        (as_stored(rank.memory.child("weights")) for rank in memory.ranks), key=lambda term: term.value
    )
    on_node = Term.of("ranks of a replica on a node", g.ranks_of_replica, n=min(ranks, cluster.accelerators_per_node))
    read = Term.product("weights of a node", "bytes", on_node, stored_weights)
    parts = [Term.ratio("from disk", "seconds", _with_host_layers(read, memory), rate)]
    link = cluster.accelerator.host_link
    if link is not None and not cluster.accelerator.memory.unified:
        source = joined(": ", (cluster.accelerator.name, link.name))
        parts.append(
            Term.of(
                "to the accelerator",
                t.transfer_seconds,
                source=source,
                M=_placed(stored_weights, plan).value,
                W=link.bytes_per_second,
            )
        )
    return {"load_seconds": Term.max("time to load, at best", *parts)}


def _with_host_layers(read: Term, memory: ServingMemory) -> Term:
    """What is read from disk, with the layers and experts that go to host memory and to no rank."""
    layers = [term for term in memory.host.children if term.name == "weights"] if memory.host is not None else []
    return Term.sum("weights of a node", read.named("of its accelerators"), *layers) if layers else read


def _placed(read: Term, plan: ServingPlan) -> Term:
    """The bytes of a rank's weights that cross the host's link."""
    if not plan.host.weights_on_host_bytes:
        return read
    return Term.of("weights on the accelerator", g.placed_bytes, M=read.value, U=plan.host.weights_on_host_bytes)


def _reading(cluster: Cluster, bandwidth: float | None) -> Term | None:
    if bandwidth is not None:
        return Term.of("reading", s.drives_rate, source="given", drives=1, W=bandwidth)
    local = drives_of(cluster.node) if cluster.node is not None else None
    if local is None:
        return None
    return Term.of("reading", s.drives_rate, basis="rule", source=DRIVE_SOURCE, drives=local.count, W=READ_RATE)
