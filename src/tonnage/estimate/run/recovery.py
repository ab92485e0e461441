"""What a failure takes with it: the checkpoint that a restart reads, and the node that must be repaired."""

from msgspec import Struct

from tonnage.catalogue.failures import FailureRate
from tonnage.estimate.host.storage import DRIVE_SOURCE, WRITE_RATE, Checkpoints, checkpoint_times, drives_of
from tonnage.estimate.options.run_options import RunOptions, duration
from tonnage.formulas import failures as f
from tonnage.formulas import storage as s
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.message import Message
from tonnage.kernel.registry import unknown
from tonnage.kernel.term import Term
from tonnage.kernel.units import DAY, GB
from tonnage.spec import Cluster, TrainingPlan

REMOTE, LOCAL, MEMORY = TIERS = ("remote", "local", "memory")
READ_RATE = 6.5 * GB  # of one drive, as DRIVE_SOURCE says
REPAIR = DAY
REPAIR_SOURCE = "an assumption: Zhang2022, metaseq's chronicles, say hours for one machine of a cloud"
PEERS = "Wang2023GEMINI, abstract: a copy in the host memory of a peer"


class Tier(Struct, frozen=True, kw_only=True):
    """The checkpoint that a restart reads first. `lost`: the share of the failures that lose it, 0 on remote storage;
    `remote`: what is read then.
    """

    name: str
    times: Checkpoints
    lost: float
    remote: Checkpoints


def tier_of(
    plan: TrainingPlan, options: RunOptions, checkpoint: Term, cluster: Cluster | None, rate: FailureRate
) -> Tier:
    """`checkpoint`: bytes of one; `rate`: whose causes are taken. A checkpoint_seconds that was given is the pause of
    the tier.
    """
    remote = checkpoint_times(checkpoint, plan.world_size, options)
    name = options.checkpoint_tier or REMOTE
    if name not in TIERS:
        raise unknown("checkpoint_tier", name, TIERS)
    if name == REMOTE or cluster is None:
        return Tier(name=REMOTE, times=remote, lost=0.0, remote=remote)
    written, read, lost = (
        _in_memory(checkpoint, plan, cluster, rate) if name == MEMORY else _on_drives(checkpoint, plan, cluster, rate)
    )
    given = duration("checkpoint_seconds", options.checkpoint_seconds)
    pause = written if given is None else Term.of("time of a checkpoint", f.pause, source="given", tau=given)
    return Tier(name=name, times=Checkpoints(pause=pause, write=written, read=read), lost=lost, remote=remote)


def _in_memory(checkpoint: Term, plan: TrainingPlan, cluster: Cluster, rate: FailureRate) -> tuple[Term, Term, float]:
    """To the memory of the host, and over the same links back; a peer has the copy of a node that is lost."""
    chip = cluster.accelerator
    if chip.host_link is None:
        raise MissingDatum("no source gives the host link of {chip}: give another {@checkpoint_tier}.", chip=chip.name)
    links = Term.of("host links", f.host_links_rate, source=PEERS, W=chip.host_link.bytes_per_second, n=plan.world_size)
    written, read = (
        Term.ratio(name, "seconds", checkpoint, links)
        for name in ("time to copy a checkpoint to host memory", "copying the checkpoint back")
    )
    return written, read, rate.share("several nodes")


def _on_drives(checkpoint: Term, plan: TrainingPlan, cluster: Cluster, rate: FailureRate) -> tuple[Term, Term, float]:
    """To the drives of the nodes, each its share; those of a node that is lost are lost."""
    node = cluster.node
    local = drives_of(node) if node is not None else None
    if node is None or local is None:
        raise MissingDatum(
            "no source says how many NVMe drives {node} has: give another {@checkpoint_tier}.",
            node=node.name if node is not None else cluster.accelerator.name,
        )
    count = local.count * -(-plan.world_size // cluster.accelerators_per_node)
    written, read = (
        Term.ratio(
            name,
            "seconds",
            checkpoint,
            Term.of("drives", s.drives_rate, basis="rule", source=DRIVE_SOURCE, drives=count, W=one),
        )
        for name, one in (
            ("time to write a checkpoint to local drives", WRITE_RATE),
            ("reading the checkpoint from local drives", READ_RATE),
        )
    )
    return written, read, rate.share("node")


def repair_seconds(options: RunOptions) -> Term:
    """Time until a failed node is back."""
    given = duration("repair_seconds", options.repair_seconds)
    if given is not None:
        return Term.of("repair of a node", f.pause, source="given", tau=given)
    return Term.of("repair of a node", f.pause, basis="rule", source=REPAIR_SOURCE, tau=REPAIR)


def with_nodes(
    plan: TrainingPlan, options: RunOptions, between_failures: Term, per_node: int, rate: FailureRate
) -> Term | None:
    """The share of the time, or of the speed, that nodes in repair leave; None where one is always at hand."""
    if options.spares is None and not options.elastic:
        if options.repair_seconds is not None:
            raise InvalidInput(Message("{@repair_seconds} says when a node is back that {@spares} replace: give both."))
        return None
    spares = options.spares or 0
    if not 0 <= spares <= 10_000:
        raise InvalidInput("{@spares} must be from 0 to 10,000. Got {spares}.", spares=spares)
    repairs = Term.of(
        "nodes in repair",
        f.repairs_at_once,
        tau_rep=repair_seconds(options).value,
        MTBF=between_failures.value,
        share_node=rate.share("node"),
    )
    if not options.elastic:
        return Term.of("time with enough nodes", f.time_with_nodes, n_spare=spares, n_rep=repairs.value)
    replicas = int(plan.data_parallel_size)
    gone = max(1, -(-replicas * per_node // int(plan.world_size)))
    return Term.of(
        "speed with the replicas left",
        f.speed_with_replicas_left,
        n_spare=spares,
        n_rep=repairs.value,
        n_gone=min(gone, replicas),
        d=replicas,
    )


def spare_accelerators(options: RunOptions, cluster: Cluster) -> int:
    """Accelerators of the spare nodes, which are paid for and train nothing."""
    return (options.spares or 0) * cluster.accelerators_per_node
