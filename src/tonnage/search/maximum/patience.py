"""What keeps users from being served that memory would hold: an engine that runs no more at once, and limits on what
they wait.
"""

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions, asked, lengths
from tonnage.estimate.serving.memory import ServingMemory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving_time.service_level import bound_by
from tonnage.estimate.serving_time.speed import replica_of
from tonnage.estimate.serving_time.times import times
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import Message
from tonnage.kernel.part_names import TPOT, TTFT
from tonnage.kernel.units import counted
from tonnage.runtimes import serving_runtime
from tonnage.search.maximum.case import Limit
from tonnage.spec import Cluster, ServingPlan

WAITS = {"ttft": TTFT, "tpot": TPOT}


def too_many(plan: ServingPlan, memory: ServingMemory) -> Limit | None:
    """An engine that deals its cache out lets those wait that it does not run."""
    if not serving_runtime(plan.engine, plan.engine_version).queues:
        return None
    most = memory.limits.requests * plan.attention_data_parallel_size
    if plan.concurrency <= most:
        return None
    of_replica = " on each replica" if plan.data_parallel_size > 1 else ""
    text = Message(
        "{engine} runs {most} at once{each} ({@max_num_seqs}); others wait",
        engine=plan.engine,
        most=counted(most, "requests"),
        each=of_replica,
    )
    return Limit(by="engine", text=text)


def is_limited(load: LoadOptions) -> bool:
    """Whether anything was said that a user may not wait for."""
    return load.ttft is not None or load.tpot is not None or load.request_rate is not None


def too_slow(
    model: Model,
    cluster: Cluster,
    plan: ServingPlan,
    memory: ServingMemory,
    usable: int,
    options: ServingOptions,
    load: LoadOptions,
) -> Limit | None:
    """The limit that this load does not keep within, or that it is never answered; MissingDatum where nobody knows
    the times.
    """
    wanted = asked(plan, options, load, lengths(model, options, load), Question())
    replica = replica_of(model, plan, cluster, memory, usable, wanted.load)
    if not replica.clock.knows_prompts:
        raise MissingDatum(
            "how long prompts take on {accelerator} is not known, so that no limit on it can be kept.",
            accelerator=cluster.accelerator.name,
        )
    if wanted.limited:
        late = bound_by(replica, wanted)
        return (
            Limit(
                by="service level",
                text=Message(
                    "{waits} would exceed --{late} {value}", waits=WAITS[late], late=late, value=getattr(load, late)
                ),
            )
            if late
            else None
        )
    first = times(replica.clock, replica.policy, wanted.load).ttft_seconds
    grows = first is None or first == float("inf")
    return (
        Limit(
            by="service level",
            text=Message(
                "at {--request-rate} {request_rate:g} the queue grows without end", request_rate=load.request_rate
            ),
        )
        if grows
        else None
    )
