"""What follows from the time of a training step: MFU, tokens a second, what it waits for, its band, its pictures."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from tonnage.architectures import Model
from tonnage.documents.run import RunDocument
from tonnage.estimate.hardware.rates import Band, Rates, rates
from tonnage.estimate.host.traffic import check_update, update_range
from tonnage.estimate.memory import Step
from tonnage.estimate.plan.pipeline_boxes import StageSeconds, StepSeconds, Work
from tonnage.estimate.plan.schedule import as_walked, schedule_of
from tonnage.estimate.step_time.counted import Conventions
from tonnage.estimate.step_time.layer_time import Passes
from tonnage.estimate.step_time.step import MOVING, ON_HOST, WHEN, StepTime
from tonnage.estimate.step_time.traffic import traffic
from tonnage.formulas import time as f
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number, is_any
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.runtimes import training_runtime
from tonnage.spec import Cluster, TrainingPlan

# What kinds of kernels wait for.
RESOURCES = {
    "product": "compute",
    "experts": "compute",
    "attention": "compute",
    "scan": "compute",
    "move": "memory bandwidth",
}


class Timing:
    """The time of one step, `term` [seconds], and its figures. Raises MissingDatum where no time is known.

    `assumed`: where nobody said how fast hosts update, the middle of what was published is taken, and the band is the
    range. Plans are compared and validated without: it lies a factor of thirty apart. `of_update`: of an objective that
    is not sft, one optimizer step alone.
    """

    def __init__(
        self,
        model: Model,
        plan: TrainingPlan,
        cluster: Cluster,
        step: Step | None = None,
        chosen: Rates | None = None,
        *,
        assumed: bool = False,
        of_update: bool = False,
    ):
        if of_update:
            check_timed_runtime(plan.runtime)
        else:
            check_timed(plan.post_training.objective, plan.runtime)
        if not assumed:
            check_update(plan)
        self.model, self.plan, self.cluster = model, as_walked(plan), cluster
        self.rates = chosen or rates()
        self.walk = StepTime(step or Step(model, plan, cluster), self.rates)

    @classmethod
    def of_step(cls, step: Step, cluster: Cluster) -> "Timing":
        """That of a step that was walked already, with what is assumed; made once for all who ask."""
        if step.timing is None or step.timing.cluster is not cluster:
            step.timing = cls(step.model, step.plan, cluster, step, assumed=True)
        timing: Timing = step.timing
        return timing

    @property
    def term(self) -> Term:
        """Seconds of a step, with everything that spends them."""
        return self.walk.term

    @property
    def seconds(self) -> Number:
        """Seconds of a step; an array if the plan's sizes are arrays."""
        return self.walk.seconds()

    @cached_property
    def traffic(self) -> Term:
        """Bytes that an accelerator of the fullest stage sends in a step."""
        return traffic(self.walk)

    # ---- what follows ----

    def utilization(self, model_flops: Number) -> Term:
        """MFU of this many FLOP of the model a step."""
        return Term.of("MFU", f.flops_utilization, C=model_flops, **self._peaks)

    @cached_property
    def hardware_utilization(self) -> Term:
        """HFU: of what all ranks did, run again or not."""
        plan = self.plan
        ranks = plan.world_size / plan.pipeline_parallel_size
        done = sum(  # the fullest expert rank is walked; the mean one counts
            spent.flops / (plan.imbalance.expert_imbalance if kind == "experts" else 1)
            for stage in self.walk.stages
            for (_, kind), spent in stage.kernels.items()
        )
        return Term.of("HFU", f.flops_utilization, C=done * plan.num_microbatches * ranks, **self._peaks)

    @property
    def _peaks(self) -> dict[str, Number]:
        kernels = self.walk.kernels
        return {"tau": self.term.value, "n": self.plan.world_size, "P": kernels.chip.peak(kernels.wide)}

    @cached_property
    def tokens_per_second(self) -> Term:
        """Tokens a second of all accelerators together."""
        tokens = self.plan.tokens_per_step
        return Term.of("tokens per second", f.tokens_per_second, D=tokens, tau=self.term.value)

    @cached_property
    def spent(self) -> dict[str, Number]:
        """Seconds of a step by what it waits for: together they are the step."""
        passes = self.walk.slowest
        assert passes is not None  # of one plan
        return self.spent_by(passes)

    def spent_by(self, passes: Passes) -> dict[str, Number]:
        """The same where these passes are those of the slowest stage; of an array in the plans in which they are."""
        walk, count = self.walk, self.plan.num_microbatches
        by_resource: defaultdict[str, Number] = defaultdict(int)
        for (_, kind), spent in passes.kernels.items():
            by_resource[RESOURCES[kind]] += count * spent.seconds
        for (_, group), spent in passes.sent.items():
            by_resource[Message("links, {group}", group=group)] += count * spent.seconds
        by_resource["the host"] += count * sum(passes.waits.values())
        by_resource["links between stages"] += count * walk.between[0]
        for part in walk.parts:
            by_resource[part.resource] += part.term.value
        seconds_by_resource = {
            name: walk.framework * seconds for name, seconds in by_resource.items() if is_any(seconds)
        }
        if (slow := walk.stragglers.value) > 1:
            seconds_by_resource["the slowest node"] = (slow - 1) * sum(seconds_by_resource.values())
        if walk.update:
            for name, term in zip(("the host", "links, to the host"), walk.update.children, strict=True):
                seconds_by_resource[name] = seconds_by_resource.get(name, 0) + term.value
        if walk.correction is not None:
            return {name: walk.calibration * seconds for name, seconds in seconds_by_resource.items()}
        return seconds_by_resource

    @property
    def bound_by(self) -> str:
        """What takes most of the step."""
        return max(self.spent, key=lambda name: self.spent[name])

    @property
    def band(self) -> Band | None:
        """The error band of the measured step times nearest in kind, or of the site's own runs. With an optimizer on
        the host there are none: then the band is of the rates at which hosts were published to update, or None where
        the plan says its own.
        """
        if (own := self.walk.correction) is not None:
            return Band(low=own.low, high=own.high, rows=own.runs)
        if self.walk.update:
            seconds, updating = float(self.term.value), float(self.walk.update.children[0].value)
            span = update_range(self.plan, seconds, updating)
            return Band(low=span[0] / seconds, high=span[1] / seconds, rows=0) if span else None
        kind = (
            "moe"
            if any(work.kind == "experts" for layer in self.walk.step.layers.values() for work in layer.work)
            else "dense"
        )
        is_near = self.walk.kernels.is_measured and self.plan.runtime in self.rates.measured
        return self.rates.band(kind if is_near else "new generation", self.plan.runtime)

    @cached_property
    def pieces(self) -> StepSeconds:
        """What a picture of the step is drawn from: seconds of each stage, of each kind of work, and of what follows
        the last backward.
        """
        walk, plan, factor = self.walk, self.plan, float(self.walk.factor)
        seen: dict[int, StageSeconds] = {}
        for passes in walk.stages:
            if id(passes) not in seen:
                there, again, back = (float(passes.computing(when)) * factor for when in WHEN)
                sent = [float(passes.sending(when)) * factor for when in WHEN]
                seen[id(passes)] = StageSeconds(
                    there, again, back, sent[0], sent[1] + sent[2], float(passes.times.weights) * factor
                )
        last = {"optimizer": 1, "weights": 2, "fixed": 3}  # weights are gathered when they are updated
        once = [part for part in walk.parts if part.term is not walk.waiting]
        once.sort(key=lambda part: last.get(part.name, part.name != MOVING and 0.5))
        after = [(part.name, part.term.name, float(part.term.value) * factor) for part in once]
        if walk.update:
            after.append((ON_HOST, ON_HOST, float(walk.update.value * walk.calibration)))
        return StepSeconds(
            stages=tuple(seen[id(passes)] for passes in walk.stages),
            num_microbatches=int(plan.num_microbatches),
            chunks=int(plan.virtual_pipeline_size),
            schedule=schedule_of(plan).name,
            between=float(walk.between[0]) * factor,
            after=tuple((name, seconds) for _, name, seconds in after),
            work=(*self._work(factor), *(Work("once a step", name, seconds) for name, _, seconds in after)),
        )

    def _work(self, factor: float) -> Iterator[Work]:
        """Seconds of all micro-batches, each once: what the leaves of `term` add up to."""
        times = self.plan.num_microbatches * factor
        for part in self.walk.one.children:
            for leaf in part.children or (part,):
                when = part.name if part.children else "between stages"
                yield Work(when, leaf.name, float(times * leaf.value))
        if self.plan.pipeline_parallel_size > 1:
            yield Work("once a step", "pipeline bubble", float(self.walk.bubble) * factor)

    @property
    def multiplies_narrow(self) -> bool:
        """Whether any product is multiplied in fewer than 16 bit here."""
        layers = self.walk.step.layers.values()
        return any(self.walk.kernels.is_narrow(work) for layer in layers for work in layer.work)

    def figures(self, model_flops: Number) -> RunDocument[Term]:
        """What the document has of a step."""
        kernels = self.walk.kernels
        return RunDocument(
            bound_by=self.bound_by,
            mfu=self.utilization(model_flops),
            hfu=self.hardware_utilization,
            tokens_per_second=self.tokens_per_second,
            conventions=Conventions(self.model, self.plan, self._peaks["tau"], kernels.chip.peak(kernels.wide)),
        )


def timing_of(step: Step, cluster: Cluster) -> Timing | None:
    """The time of a step; None where nobody knows it."""
    try:
        timing = Timing.of_step(step, cluster)
        return timing if timing.seconds else None
    except MissingDatum:
        return None


def seconds_of(model: Model, plan: TrainingPlan, cluster: Cluster) -> float | None:
    """Seconds of a step; None where nobody knows."""
    timing = timing_of(Step(model, plan, cluster), cluster)
    return float(timing.seconds) if timing else None


def check_timed(objective: str, runtime: str) -> None:
    """MissingDatum where nobody knows the time of a step, whatever the sizes of the plan are."""
    if objective != "sft":
        raise MissingDatum(
            "the time of objective {objective} depends on generation and on other models, which this search does not "
            "estimate: train and plan do.",
            objective=objective,
        )
    check_timed_runtime(runtime)


def check_timed_runtime(runtime: str) -> None:
    """MissingDatum where nobody knows how fast a runtime's kernels are."""
    if not training_runtime(runtime).is_timed:
        raise MissingDatum(
            "the time of runtime {runtime} is not estimated: the speed of its kernels is not published.",
            runtime=runtime,
        )
