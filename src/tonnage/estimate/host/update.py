"""The optimizer on the host: the seconds in which processors update, and what the update moves while the accelerator
waits for it.
"""

from tonnage.estimate.step.offload import offloaded
from tonnage.formulas.host import host_update_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term
from tonnage.spec import Cluster, TrainingPlan

# 30 bytes for each parameter of a node over the seconds that were published: 1.9, 12, 34 and 54 GB/s (docs/LOG.md).
PUBLISHED = "published updates got 2 to 54 GB/s of a node"


def check_update(plan: TrainingPlan) -> None:
    """MissingDatum where processors update and nobody said how fast."""
    if plan.offload.offload_optimizer != "none" and plan.offload.host_update_bandwidth is None:
        raise MissingDatum(
            "the time of a step whose optimizer runs on the host needs {@host_update_bandwidth}, in "
            "bytes a second of a node: the memory's own bandwidth is not what bounds it "
            "({published}, a tenth of it and less).",
            published=PUBLISHED,
        )


def update_on_host(plan: TrainingPlan, cluster: Cluster, updated: Number, bytes_each: float) -> Term:
    """Seconds in which a node's processors update the parameters of all its ranks, `updated` on each, of which so
    many bytes move. MissingDatum where nobody said how fast.
    """
    check_update(plan)
    return Term.of(
        "update on the host",
        host_update_seconds,
        source="given: host_update_bandwidth",
        N=updated * offloaded(plan, "optimizer"),
        w=bytes_each,
        ranks=cluster.accelerators_per_node,
        W=plan.offload.host_update_bandwidth,
    )
