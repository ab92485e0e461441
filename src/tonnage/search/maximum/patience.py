"""What keeps users from being served that memory would hold: an engine that runs no more at once, and limits on what
they wait.
"""

from tonnage.architectures import Model
from tonnage.documents.serving import Bound
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions, asked, lengths
from tonnage.estimate.serving.memory import ServingMemory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.estimate.serving_time.service_level import waits_of
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


Late = tuple[Limit | None, Limit | None, Limit | None]


def too_slow(
    model: Model,
    cluster: Cluster,
    plan: ServingPlan,
    memory: ServingMemory,
    usable: int,
    options: ServingOptions,
    load: LoadOptions,
) -> Late:
    """The limit that this load does not keep within, or that it is never answered: at the high end of the error bands
    of TTFT and TPOT, by the estimate, at the low end. MissingDatum where nobody knows the times.
    """
    wanted = asked(plan, options, load, lengths(model, options, load), Question())
    replica = replica_of(model, plan, cluster, memory, usable, wanted.load)
    if not replica.clock.knows_prompts:
        raise MissingDatum(
            "how long prompts take on {accelerator} is not known, so that no limit on it can be kept.",
            accelerator=cluster.accelerator.name,
        )
    split = None
    if wanted.prefill_replicas:
        from tonnage.estimate.serving_time.split import split_replicas

        split = split_replicas(model, plan, cluster, wanted, replica.pool)
    if wanted.limited:
        waits = waits_of(replica, wanted) if split is None else split.times.waits
        rates = serving_rates()
        chip, runtime = cluster.accelerator, serving_runtime(plan.engine, plan.engine_version)
        bands = [rates.around(f"{name}_seconds", 1.0, chip, runtime) or (1.0, 1.0) for name in WAITS]
        lows, highs = zip(*bands, strict=True)
        high, estimate, low = (
            _late(waits.times(*factors).over(wanted), load, in_band=in_band)
            for factors, in_band in ((highs, True), ((1.0, 1.0), False), (lows, False))
        )
        return (estimate or high), estimate, low
    first = times(replica.clock, replica.policy, wanted.load).ttft_seconds if split is None else split.times.waits.ttft
    if first is not None and first < float("inf"):
        return None, None, None
    text = Message("at {--request-rate} {request_rate:g} the queue grows without end", request_rate=load.request_rate)
    never = Limit(by="service level", text=text)
    return never, never, never


def _late(name: Bound | None, load: LoadOptions, *, in_band: bool) -> Limit | None:
    """The limit that is exceeded. `in_band`: by the high end of the error band alone."""
    if name is None:
        return None
    text = Message(
        "{waits} would exceed --{late} {value} at the high end of its error band"
        if in_band
        else "{waits} would exceed --{late} {value}",
        waits=WAITS[name],
        late=name,
        value=getattr(load, name),
    )
    return Limit(by="service level", text=text)
