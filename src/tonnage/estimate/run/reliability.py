"""What failures cost: how often a cluster fails, how long a checkpoint and a restart take, how often to save, what
is left.
"""

from msgspec import Struct

from tonnage.estimate.host.storage import Checkpoints, checkpoint_times
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import RunOptions, duration
from tonnage.formulas import failures as f
from tonnage.formulas.run import accelerators_of_plan
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import DAY, HOUR, human
from tonnage.spec import TrainingPlan


class Observed(Struct, frozen=True, kw_only=True):
    """Interruptions that somebody counted and published: of so many accelerators, in so many seconds."""

    name: str
    failures: float
    accelerators: int
    seconds: float
    source: str

    @property
    def accelerator_mtbf(self) -> float:
        """Mean seconds between failures of one accelerator with its share of everything."""
        return float(f.accelerator_mtbf(n=self.accelerators, tau=self.seconds, F=self.failures))


OBSERVED = {
    each.name: each
    for each in (
        Observed(
            name="Llama 3",
            failures=419,
            accelerators=16384,
            seconds=54 * DAY,
            source="Grattafiori2024, sec. 3.3.4: H100, unexpected interruptions",
        ),
        # At least: 35 restarts by hand and, as the authors estimate, 70 by themselves, in two months of 30 days.
        Observed(
            name="OPT-175B",
            failures=105,
            accelerators=992,
            seconds=60 * DAY,
            source="Zhang2022, sec. 2.4 and 2.5: A100, hardware alone",
        ),
        # Failures per thousand days of a node of eight.
        Observed(
            name="RSC-1",
            failures=6.50,
            accelerators=8,
            seconds=1000 * DAY,
            source="Kokolis2024, sec. III: A100, hardware alone",
        ),
        Observed(
            name="RSC-2",
            failures=2.34,
            accelerators=8,
            seconds=1000 * DAY,
            source="Kokolis2024, sec. III: A100, hardware alone",
        ),
    )
}
DEFAULT = OBSERVED["Llama 3"]
# Finding the fault and testing the nodes; then the checkpoint is read, which is taken to last as long as writing it.
DETECTION = 600.0
DETECTION_SOURCE = "an assumption: the bound of Jiang2024, sec. 6.3, on detecting a failure and testing nodes"
FAR = 0.9  # an interval that leaves less of the goodput that the best one leaves is said to be far from it


class Reliability(Struct, frozen=True, kw_only=True):
    """Times of one cluster, plan and checkpoint. `interval_by_young` stands beside the interval that is used;
    `interval_by_daly` and
    `goodput_by_daly`: the best that could be used, and what it leaves."""

    between_failures: Term
    checkpoint: Term
    restart: Term
    interval: Term
    interval_by_young: Term
    interval_by_daly: Term
    goodput: Term
    goodput_by_daly: Term


def reliability(step_time: Term, plan: TrainingPlan, options: RunOptions, checkpoint: Term) -> Reliability:
    """`checkpoint`: bytes of one. Nothing of writing it is hidden behind training, unless `checkpoint_seconds` says
    so.
    """
    between = _between_failures(plan, options)
    times = checkpoint_times(checkpoint, plan.world_size, options)
    write, restart = times.pause, _restart(options, times)
    young = Term.of("by Young", f.young_interval, delta=write.value, MTBF=between.value)
    best = _at_least_a_step(Term.of("by Daly", f.daly_interval, delta=write.value, MTBF=between.value), step_time)
    interval_given = duration("checkpoint_interval", options.checkpoint_interval)
    interval = (
        best
        if interval_given is None
        else _at_least_a_step(Term.of("given", f.pause, source="given", tau=interval_given), step_time)
    )
    goodput, by_daly = (
        Term.of("goodput", f.goodput, tau_c=term.value, delta=write.value, MTBF=between.value, tau_r=restart.value)
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
    )


def note(figures: Reliability, options: RunOptions, question: Question) -> None:
    """What was taken for granted, and why."""
    o, q = options, question
    q.take(
        "accelerator_mtbf",
        duration("accelerator_mtbf", o.accelerator_mtbf),
        DEFAULT.accelerator_mtbf,
        "measurements",
        Message(
            "{accelerator_mtbf}: {failures:g} interruptions of {accelerators:,} accelerators in {seconds}; {source}",
            accelerator_mtbf=human(DEFAULT.accelerator_mtbf, "seconds"),
            failures=DEFAULT.failures,
            accelerators=DEFAULT.accelerators,
            seconds=human(DEFAULT.seconds, "seconds"),
            source=DEFAULT.source,
        ),
    )
    q.take(
        "checkpoint_seconds",
        duration("checkpoint_seconds", o.checkpoint_seconds),
        figures.checkpoint.value,
        "default",
        "bytes of a checkpoint / storage_bandwidth, nothing hidden",
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


def _between_failures(plan: TrainingPlan, o: RunOptions) -> Term:
    mtbf = duration("accelerator_mtbf", o.accelerator_mtbf)
    if mtbf is not None:
        one = Term.of("of one accelerator", f.mtbf_given, source="given", MTBF=mtbf)
    else:
        one = Term.of(
            "of one accelerator",
            f.accelerator_mtbf,
            basis="measured",
            source=DEFAULT.source,
            n=DEFAULT.accelerators,
            tau=DEFAULT.seconds,
            F=DEFAULT.failures,
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
