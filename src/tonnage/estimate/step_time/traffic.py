"""What each parallel dimension sends in a step: bytes of one accelerator, over which link, and how much of the time
is hidden.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tonnage.estimate.hardware.network import Network
from tonnage.estimate.step_time.layer_time import WHEN, Passes
from tonnage.estimate.step_time.step import StepTime
from tonnage.formulas import communication as f
from tonnage.kernel.formula import Number, is_any
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term

PASS_NAMES = {"forward": "forward", "again": "recomputed", "backward": "backward"}
ONCE = {"gradients": "data parallel", "weights": "data parallel", "gradients of replicas": "replicas"}


class Sent(NamedTuple):
    """One thing that ranks send in a step. `seconds`: of links, whether anybody waits for them or not; `hidden`: the
    share of them that runs beside kernels; `link`: over which it goes, both where a group has ranks in one node and
    in others.
    """

    group: str
    link: str
    term: Term
    seconds: Number
    hidden: Number


def traffic(step_time: StepTime) -> Term:
    """Bytes that one accelerator of the fullest stage sends in a step: a sum over parallel dimensions, of sums over
    passes.
    """
    groups: dict[str, list[Sent]] = {}
    for sending in sendings(step_time):
        groups.setdefault(sending.group, []).append(sending)
    parts = [
        Term.sum(Message("{name} over {link}", name=name, link=sent[0].link), *(sending.term for sending in sent))
        for name, sent in groups.items()
    ]
    return Term.sum("communication volume per step", *parts, unit="bytes")


def sendings(step_time: StepTime) -> Iterator[Sent]:
    """Everything that an accelerator of the fullest stage sends in a step, one after the other."""
    micro_batches = step_time.plan.num_microbatches
    links = Links(step_time)
    stage: Passes = step_time.stages[step_time.fullest.rank]
    for group in dict.fromkeys(group for _, group in stage.sent):
        for when in WHEN:
            if (when, group) in stage.sent:
                spent = stage.sent[when, group]
                yield _sent(
                    group, links.of(group), PASS_NAMES[when], spent.bytes, micro_batches, spent.seconds, spent.hidden
                )
    seconds, size = step_time.between
    if step_time.plan.pipeline_parallel_size > 1:
        group = "pipeline parallel"
        yield _sent(group, links.of(group), "to the next stage and back", size, micro_batches, seconds, 0)
    exposed_of = {part.name: part.term.value for part in step_time.parts}
    for name, (sending, _) in step_time.once_a_step.items():
        exposed = exposed_of[name]
        yield _sent(ONCE[name], links.of(ONCE[name]), name, sending.sent, 1, exposed, sending.seconds - exposed)


def _sent(group: str, link: str, name: str, size: Number, times: Number, exposed: Number, hidden: Number) -> Sent:
    term = Term.of(name, f.traffic_in_a_step, M=size, m=times)
    seconds = exposed + hidden
    # nothing sent is nothing hidden: no number is divided by 0
    return Sent(group, link, term, times * seconds, hidden / (seconds + (seconds == 0) * 1.0))


class Links:
    """Over which links the ranks of a group talk."""

    def __init__(self, step_time: StepTime):
        plan, self.network = step_time.plan, step_time.network
        shards = step_time.shards
        t, c, d = plan.tensor_parallel_size, plan.context_parallel_size, plan.data_parallel_size
        self.lies: dict[str, tuple[Number, Number]] = {
            **{str(group): lies for group, lies in step_time.groups.items()},
            "sharded states": (shards, t),
            "data parallel": (shards, t),
            "replicas": (plan.replicate_size, t * shards),
            "pipeline parallel": (2, t * c * d),
        }

    def of(self, group: str) -> str:
        """Names of the links, the one inside first."""
        ranks, stride = self.lies[group]
        network: Network = self.network
        reach, per_node = stride * (ranks - 1) + 1, network.per_node
        used = [
            level.link.name
            for level, is_used in (
                (network.bridge, network.bridges(reach) > 0),
                (network.inside, (stride < per_node) * (1 - network.bridges(reach)) > 0),
                (network.outside, reach > per_node),
            )
            if level and level.link and is_any(is_used)
        ]
        return " and ".join(used) or "no link"
