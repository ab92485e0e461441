"""What failures cost: how often a cluster fails, how long a checkpoint and a restart take, how often to save, what
is left.
"""

from msgspec import Struct

from tonnage.catalogue.failures import LARGEST_RUN, FailureRate, failure_rate, rate_of_generation
from tonnage.estimate.host.storage import Checkpoints
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import RunOptions, duration
from tonnage.estimate.run.recovery import REMOTE, REPAIR_SOURCE, Tier, repair_seconds, tier_of, with_nodes
from tonnage.formulas import failures as f
from tonnage.formulas.run import accelerators_of_plan
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import HOUR, human
from tonnage.spec import Cluster, TrainingPlan

# Finding the fault and testing the nodes; then the checkpoint is read, which is taken to last as long as writing it.
DETECTION = 600.0
DETECTION_SOURCE = "an assumption: the bound of Jiang2024, sec. 6.3, on detecting a failure and testing nodes"
FAR = 0.9  # an interval that leaves less of the goodput that the best one leaves is said to be far from it


class Reliability(Struct, frozen=True, kw_only=True):
    """Times of one cluster, plan and checkpoint. `interval_by_young` stands beside the interval that is used;
    `interval_by_daly` and
    `goodput_by_daly`: the best that could be used, and what it leaves. `runs_share`: the share of the time in which
    training does not wait for nodes, where it may."""

    between_failures: Term
    checkpoint: Term
    restart: Term
    interval: Term
    interval_by_young: Term
    interval_by_daly: Term
    goodput: Term
    goodput_by_daly: Term
    rate: FailureRate
    runs_share: Term | None = None


def reliability(
    step_time: Term, plan: TrainingPlan, options: RunOptions, checkpoint: Term, cluster: Cluster | None = None
) -> Reliability:
    """`checkpoint`: bytes of one. Nothing of writing it is hidden behind training, unless `checkpoint_seconds` says
    so. `cluster`: whose published failures, drives and host links are taken; without it those of the largest run, and
    remote storage.
    """
    rate = rate_for(options, cluster)
    between = _between_failures(plan, options, rate)
    causes = rate if rate.cause else failure_rate(LARGEST_RUN)
    tier = tier_of(plan, options, checkpoint, cluster, causes)
    write, restart = tier.times.pause, _restart(options, tier.times)
    survived = (
        Term.of("failures that leave the checkpoint", f.mtbf_of_others, MTBF=between.value, share_lost=tier.lost)
        if tier.lost
        else between
    )
    young = Term.of("by Young", f.young_interval, delta=write.value, MTBF=survived.value)
    best = _at_least_a_step(Term.of("by Daly", f.daly_interval, delta=write.value, MTBF=survived.value), step_time)
    interval_given = duration("checkpoint_interval", options.checkpoint_interval)
    interval = (
        best
        if interval_given is None
        else _at_least_a_step(Term.of("given", f.pause, source="given", tau=interval_given), step_time)
    )
    per_node = cluster.accelerators_per_node if cluster is not None else 8
    nodes = with_nodes(plan, options, between, per_node, causes)
    remote = _from_remote(tier, between, interval, options) if tier.lost else None
    others = [share for share in (remote, nodes) if share is not None]
    goodput, by_daly = (
        _product(
            Term.of(
                "goodput", f.goodput, tau_c=term.value, delta=write.value, MTBF=survived.value, tau_r=restart.value
            ),
            others,
        )
        for term in (interval, best)
    )
    return Reliability(
        between_failures=between,
        checkpoint=write,
        restart=restart,
        interval=interval,
        interval_by_young=young,
        interval_by_daly=best,
        goodput=goodput,
        goodput_by_daly=by_daly,
        rate=rate,
        runs_share=None if options.elastic else nodes,
    )


def rate_for(options: RunOptions, cluster: Cluster | None) -> FailureRate:
    """The published rate that is taken: the one named, else that of the accelerator's generation."""
    if options.failures is None:
        return rate_of_generation(cluster.accelerator.generation) if cluster is not None else failure_rate(LARGEST_RUN)
    if options.accelerator_mtbf is not None:
        raise InvalidInput(
            "{@failures} and {@accelerator_mtbf} say the same: give one of them. Got {failures} and {mtbf}.",
            failures=options.failures,
            mtbf=options.accelerator_mtbf,
        )
    return failure_rate(options.failures)


def _product(goodput: Term, others: list[Term]) -> Term:
    """The goodput of the nearest checkpoint times what the other losses leave."""
    return Term.product("goodput", "", goodput.named("with the nearest checkpoint"), *others) if others else goodput


def _from_remote(tier: Tier, between: Term, interval: Term, options: RunOptions) -> Term:
    """What failures leave that lose the nearest checkpoint: the one on remote storage is written beside training, one
    after another, and is as old as the time to write it.
    """
    lost = Term.of("failures that lose the checkpoint", f.mtbf_of_losses, MTBF=between.value, share_lost=tier.lost)
    write = tier.remote.write
    restart = Term.sum("time of a restart", _restart(options, tier.remote), write)
    return Term.of(
        "with remote storage",
        f.goodput,
        tau_c=max(interval.value, write.value),
        delta=0.0,
        MTBF=lost.value,
        tau_r=restart.value,
    )


def note(figures: Reliability, options: RunOptions, question: Question) -> None:
    """What was taken for granted, and why."""
    o, q = options, question
    rate = figures.rate
    q.take(
        "accelerator_mtbf",
        duration("accelerator_mtbf", o.accelerator_mtbf),
        accelerator_mtbf(rate),
        "measurements",
        Message(
            "{accelerator_mtbf}: {failures:g} interruptions of {accelerators:,} accelerators in {seconds}; {source}",
            accelerator_mtbf=human(accelerator_mtbf(rate), "seconds"),
            failures=rate.failures,
            accelerators=rate.accelerators,
            seconds=human(rate.seconds, "seconds"),
            source=source_of(rate),
        ),
    )
    if o.checkpoint_tier is not None:
        q.put("checkpoint_tier", o.checkpoint_tier, "given")
    if o.spares is not None or o.elastic:
        q.take("spares", o.spares, 0, "default", "none were given")
        q.take(
            "repair_seconds",
            duration("repair_seconds", o.repair_seconds),
            repair_seconds(o).value,
            "default",
            REPAIR_SOURCE,
        )
        q.take("elastic", o.elastic, False, "default", "training waits for the repair")
    q.take(
        "checkpoint_seconds",
        duration("checkpoint_seconds", o.checkpoint_seconds),
        figures.checkpoint.value,
        "default",
        "bytes of a checkpoint / storage_bandwidth, nothing hidden"
        if o.checkpoint_tier in (None, REMOTE)
        else Message("bytes of a checkpoint / bandwidth of its tier, {tier}, nothing hidden", tier=o.checkpoint_tier),
    )
    q.take(
        "restart_seconds",
        duration("restart_seconds", o.restart_seconds),
        figures.restart.value,
        "default",
        Message(
            "{detection} ({detection_source}), and reading the checkpoint",
            detection=human(DETECTION, "seconds"),
            detection_source=DETECTION_SOURCE,
        )
        if o.storage_read_bandwidth is not None
        else Message(
            "{detection} ({detection_source}), and reading the checkpoint as fast as it was written",
            detection=human(DETECTION, "seconds"),
            detection_source=DETECTION_SOURCE,
        ),
    )
    q.take(
        "checkpoint_interval",
        duration("checkpoint_interval", o.checkpoint_interval),
        figures.interval.value,
        "default",
        "Daly's optimum, at least one step; Daly2006, eq. 37",
    )
    if figures.goodput.value < FAR * figures.goodput_by_daly.value:
        q.warn(
            Message(
                "a {@checkpoint_interval} of {interval} leaves a goodput of {goodput:.0%}: Daly's "
                "optimum, {interval_by_daly}, would leave {goodput_by_daly:.0%}.",
                interval=human(figures.interval.value, "seconds"),
                goodput=figures.goodput.value,
                interval_by_daly=human(figures.interval_by_daly.value, "seconds"),
                goodput_by_daly=figures.goodput_by_daly.value,
            )
        )
    elif figures.goodput.value < 0.5:
        q.warn(
            Message(
                "goodput {goodput:.0%}: these accelerators fail every {between_failures} "
                "({between_failures2:.2g} h), and saving takes {checkpoint}, a restart {restart}.",
                goodput=figures.goodput.value,
                between_failures=human(figures.between_failures.value, "seconds"),
                between_failures2=figures.between_failures.value / HOUR,
                checkpoint=human(figures.checkpoint.value, "seconds"),
                restart=human(figures.restart.value, "seconds"),
            )
        )


def accelerator_mtbf(rate: FailureRate) -> float:
    """Mean seconds between failures of one accelerator with its share of everything."""
    return float(f.accelerator_mtbf(n=rate.accelerators, tau=rate.seconds, F=rate.failures))


def source_of(rate: FailureRate) -> str:
    """Who counted what, on which accelerator."""
    return f"{rate.source}: {rate.accelerator}, {rate.counts}"


def note_failures(figures: Reliability, failures: Term, options: RunOptions, question: Question) -> None:
    """Whose rate was taken, where a run is likely to be interrupted at all."""
    if options.accelerator_mtbf is None and (options.failures is not None or failures.value >= 1):
        question.take("failures", options.failures, figures.rate.name, "measurements", source_of(figures.rate))


def _between_failures(plan: TrainingPlan, o: RunOptions, rate: FailureRate) -> Term:
    mtbf = duration("accelerator_mtbf", o.accelerator_mtbf)
    if mtbf is not None:
        one = Term.of("of one accelerator", f.mtbf_given, source="given", MTBF=mtbf)
    else:
        one = Term.of(
            "of one accelerator",
            f.accelerator_mtbf,
            basis="measured",
            source=source_of(rate),
            n=rate.accelerators,
            tau=rate.seconds,
            F=rate.failures,
        )
    return Term.ratio("time between failures", "seconds", one, accelerators(plan))


def _restart(o: RunOptions, times: Checkpoints) -> Term:
    seconds = duration("restart_seconds", o.restart_seconds)
    if seconds is not None:
        return Term.of("time of a restart", f.pause, source="given", tau=seconds)
    detection = Term.of("finding the fault", f.pause, basis="rule", source=DETECTION_SOURCE, tau=DETECTION)
    return Term.sum("time of a restart", detection, times.read)


def _at_least_a_step(interval: Term, step_time: Term) -> Term:
    """Nothing can be saved more often than after each step."""
    return Term.max("checkpoint interval", interval, step_time)


def accelerators(plan: TrainingPlan) -> Term:
    """All that the plan uses."""
    return Term.of(
        "accelerators",
        accelerators_of_plan,
        t=plan.tensor_parallel_size,
        p=plan.pipeline_parallel_size,
        c=plan.context_parallel_size,
        d=plan.data_parallel_size,
    )
