"""What offloading moves in a step: bytes of one rank over its host link and to NVMe, and the seconds that they take."""

from typing import NamedTuple

from tonnage.estimate.hardware.links import Links, links
from tonnage.estimate.host.storage import drives_of
from tonnage.estimate.inputs import LEAST_UPDATE, MIDDLE_UPDATE, MOST_UPDATE, PUBLISHED_UPDATES
from tonnage.estimate.step.communication import copies, width_of
from tonnage.estimate.step.stage import StageMemory
from tonnage.estimate.step.states import MOST_IN_MEMORY, leaving, offloaded
from tonnage.formulas import communication as f
from tonnage.formulas import memory
from tonnage.formulas.host import host_update_seconds
from tonnage.formulas.time import transfer_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number, is_any, maximum
from tonnage.kernel.term import Term
from tonnage.spec import Cluster, Link, TrainingPlan

# What the optimizer moves when it updates, by the names of the leaves: over the host link, and to NVMe and from it.
WEIGHTS, STATES = ("updated weights",), ("states", "gradients", "states and gradients")


class OffloadTraffic(NamedTuple):
    """Bytes of one rank in a step, each a sum of leaves: from the accelerator, to it, written to NVMe and read from
    there.
    """

    to_host: Term
    from_host: Term
    written: Term
    read: Term

    @property
    def once(self) -> "OffloadTraffic":
        """What the update at the end of a step moves: nothing is computed on the accelerator beside it."""
        return self._part(inside=True)

    @property
    def beside(self) -> "OffloadTraffic":
        """What is moved while forward and backward run."""
        return self._part(inside=False)

    def _part(self, *, inside: bool) -> "OffloadTraffic":
        def part(term: Term, names: tuple[str, ...]) -> Term:
            return Term.sum(
                term.name, *(child for child in term.children if (child.name in names) == inside), unit="bytes"
            )

        return OffloadTraffic(
            part(self.to_host, ()), part(self.from_host, WEIGHTS), part(self.written, STATES), part(self.read, STATES)
        )


class OffloadSeconds(NamedTuple):
    """Seconds of a rank's host link and of its share of the node's disks: both can run beside kernels, and beside
    each other.
    """

    link: Number
    storage: Number


def offload_traffic(stage: StageMemory) -> OffloadTraffic:
    """What a rank of this stage moves in a step."""
    traffic = _Traffic(stage)
    return OffloadTraffic(
        Term.sum("to the host", *traffic.to_host, unit="bytes"),
        Term.sum("from the host", *traffic.from_host, unit="bytes"),
        Term.sum("written to NVMe", *traffic.written, unit="bytes"),
        Term.sum("read from NVMe", *traffic.read, unit="bytes"),
    )


def offload_seconds(
    traffic: OffloadTraffic, cluster: Cluster, disks: Link | None = None, constants: Links | None = None
) -> OffloadSeconds:
    """Time of the links at what one copy reaches of their datasheets, both directions one after the other: gradients
    leave and weights come in different phases of a step. `disks`: of a node, which its ranks share; MissingDatum
    where they or the host link are needed and not known.
    """
    host = cluster.accelerator.host_link
    through, stored = traffic.to_host.value + traffic.from_host.value, traffic.written.value + traffic.read.value
    seconds: Number = 0
    if is_any(through > 0):
        if host is None:
            raise MissingDatum(
                "no source gives the host link of {accelerator}: the time of offloading needs it.",
                accelerator=cluster.accelerator.name,
            )
        share = (constants or links()).of(host, inside=True).direct
        seconds = transfer_seconds.evaluate(M=through, W=host.bytes_per_second * share)
    if not is_any(stored > 0):
        return OffloadSeconds(seconds, 0)
    if disks is None:
        raise MissingDatum(
            "no source gives the bytes a second of the disks of {cluster}: the time of offloading to NVMe needs them.",
            cluster=cluster.name,
        )
    disk_rate = disks.bytes_per_second / cluster.accelerators_per_node
    return OffloadSeconds(seconds, transfer_seconds.evaluate(M=stored, W=disk_rate))


def over_host(moved: OffloadTraffic, cluster: Cluster | None) -> tuple[Number, Number]:
    """Seconds of the links, the host's and the node's own drives beside it, and bytes."""
    assert cluster is not None
    drives = drives_of(cluster.node) if cluster.node else None
    disks = Link(name="drives of a node", bytes_per_second=drives.write_rate.value) if drives else None
    seconds = offload_seconds(moved, cluster, disks)
    return maximum(seconds.link, seconds.storage), moved.to_host.value + moved.from_host.value


class _Traffic:
    """The four lists of leaves, filled state by state."""

    def __init__(self, stage: StageMemory):
        self.stage, self.plan, self.step = stage, stage.plan, stage.step
        self.to_host: list[Term] = []
        self.from_host: list[Term] = []
        self.written: list[Term] = []
        self.read: list[Term] = []
        self._optimizer()
        self._parameters()
        self._activations()

    def _times(self, term: Term, name: str, times: Number) -> Term:
        return Term.of(name, f.traffic_in_a_step, M=term.value, m=times)

    def _optimizer(self) -> None:
        """Gradients go where the optimizer is, updated weights come back, but for those that stay on the host and
        come for each layer.
        """
        plan, stage, updates = self.plan, self.stage, self.step.updates
        if plan.offload.offload_optimizer == "none":
            return
        share, held = offloaded(plan, "optimizer"), stage.trained_shard
        narrow = width_of("compute", updates)
        gradients, times = self.step.framework.gradients_to_host(stage)
        self.to_host.append(self._times(gradients, "gradients", times))
        if plan.offload.offload_parameters == "none":
            self.from_host.append(self._times(leaving(copies("weights", narrow, held), share), "updated weights", 1))
        if plan.offload.offload_optimizer == "nvme":
            both = Term.sum("states", stage.every_state, copies("gradients", width_of("master", updates), held))
            self.written += [self._times(stage.every_state, "states", 1)]
            self.read += [self._times(both, "states and gradients", 1)]
            self.written.append(self._times(both.children[1], "gradients", 1))

    def _parameters(self) -> None:
        """A shard comes before each layer runs: forward, and with ZeRO-3 again for backward. The optimizer updates
        it on the host.
        """
        plan, stage = self.plan, self.stage
        if plan.offload.offload_parameters == "none":
            return
        passes = (2 if plan.zero_stage == 3 else 1) * plan.num_microbatches
        self.from_host.append(self._times(stage.every_weight, "weights", passes))
        if plan.offload.offload_parameters == "nvme":
            beyond = Term.of(
                "parameters beyond max_in_cpu", memory.parameters_beyond, N=stage.shard.value, xi=MOST_IN_MEMORY
            )
            stored = copies("weights", self.step.recipe.compute_bytes, beyond)
            self.read.append(self._times(stored, "weights", passes))
            self.written.append(self._times(stored, "updated weights", 1))

    def _activations(self) -> None:
        """Out in forward, back in backward, of every micro-batch; to NVMe they pass the host link too."""
        plan, stage = self.plan, self.stage
        if plan.offload.offload_activations == "none":
            return
        leaves = stage.tensors.leaves
        layers = [
            Term.product(block.name, "bytes", Term.of("layers", memory.layers_on_rank, l=count), leaves[block])
            for block, count in stage.counts.items()
        ]
        activations = Term.sum("activations", *layers, unit="bytes")
        moved = self._times(activations, "activations", plan.num_microbatches)
        self.to_host.append(moved)
        self.from_host.append(moved)
        if plan.offload.offload_activations == "nvme":
            self.written.append(moved)
            self.read.append(moved)


PUBLISHED = "published updates got 2 to 54 GB/s of a node"

# ---- The optimizer on the host: the seconds in which processors update, and what the update moves while the
# accelerator
# waits for it.


def check_update(plan: TrainingPlan) -> None:
    """MissingDatum where processors update and nobody said how fast."""
    if plan.offload.offload_optimizer != "none" and plan.offload.host_update_bandwidth is None:
        raise MissingDatum(
            "the time of a step whose optimizer runs on the host needs {@host_update_bandwidth}, in "
            "bytes a second of a node: the memory's own bandwidth is not what bounds it "
            "({published}, a tenth of it and less).",
            published=PUBLISHED,
        )


def update_range(plan: TrainingPlan, seconds: float, updating: float) -> tuple[float, float] | None:
    """Seconds of a step of so many, of which the host is `updating` for some, at the most and the least bytes a second
    that were published; None where the plan says its own.
    """
    if plan.offload.host_update_bandwidth is not None:
        return None
    rest = seconds - updating
    return rest + updating * MIDDLE_UPDATE / MOST_UPDATE, rest + updating * MIDDLE_UPDATE / LEAST_UPDATE


def update_on_host(plan: TrainingPlan, cluster: Cluster, updated: Number, bytes_each: float) -> Term:
    """Seconds in which a node's processors update the parameters of all its ranks, `updated` on each, of which so
    many bytes move: at the plan's own rate, else in the middle of those that were published.
    """
    given = plan.offload.host_update_bandwidth
    return Term.of(
        "update on the host",
        host_update_seconds,
        source=PUBLISHED_UPDATES if given is None else "given: host_update_bandwidth",
        N=updated * offloaded(plan, "optimizer"),
        w=bytes_each,
        ranks=cluster.accelerators_per_node,
        W=MIDDLE_UPDATE if given is None else given,
    )
