"""The time of a training step as a tree: micro-batches by pass and kind of work, bubble, replicas, optimizer; and
what follows from it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

from tonnage.architectures import Model
from tonnage.documents.run import RunDocument
from tonnage.estimate.hardware.rates import Band, Rates, rates
from tonnage.estimate.host.update import check_update
from tonnage.estimate.memory import Step
from tonnage.estimate.plan.pipeline_boxes import StageSeconds, StepSeconds, Work
from tonnage.estimate.plan.schedule import schedule_of
from tonnage.estimate.step.offload import offloaded
from tonnage.estimate.step_time.counted import Conventions
from tonnage.estimate.step_time.kernel_time import KINDS
from tonnage.estimate.step_time.passes import WHEN, Passes, Spent
from tonnage.estimate.step_time.step import StepTime
from tonnage.estimate.step_time.traffic import traffic
from tonnage.formulas import time as f
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.runtimes import training_runtime
from tonnage.spec import Cluster, TrainingPlan

PASSES = {"forward": "forward", "again": "run again", "backward": "backward"}
MOVING, ON_HOST = "to the host and back, not hidden", "optimizer on the host"
SCRIPT = "scripts/fit_rates.py"
# What kinds of kernels wait for.
RESOURCES = {
    "product": "compute",
    "experts": "compute",
    "attention": "compute",
    "scan": "compute",
    "move": "memory bandwidth",
}


class Timing:
    """The time of one step, `term` [seconds], and its figures. Raises MissingDatum where no time is known."""

    def __init__(
        self, model: Model, plan: TrainingPlan, cluster: Cluster, step: Step | None = None, chosen: Rates | None = None
    ):
        _check(plan)
        self.model, self.plan, self.cluster = model, plan, cluster
        self.rates = chosen or rates()
        self.walk = StepTime(step or Step(model, plan, cluster), self.rates)

    # ---- the tree ----

    @cached_property
    def term(self) -> Term:
        """Seconds of a step: what its slowest stage does, and what all wait for besides."""
        walk, plan = self.walk, self.plan
        count = Term.of("micro-batches of a step", f.microbatches, m=plan.num_microbatches)
        parts = [Term.product("micro-batches of the slowest stage", "seconds", count, self._one)]
        if plan.pipeline_parallel_size > 1:
            parts.append(walk.waiting)
        parts += [
            self._sent(Message("{name}, once a step", name=name), seconds, size)
            for name, (seconds, size) in walk.data_parallel.items()
        ]
        if walk.moves_beside:
            parts.append(self._sent(MOVING, *walk.moving))
        parts.append(self._optimizer)
        parts.append(
            self._fitted(
                "fixed",
                walk.rates.step,
                "seconds",
                "data, metrics, synchronisation: no kernel and no message explains them",
            )
        )
        step = Term.sum("step", *parts)
        factors = []
        if walk.framework != 1:
            what = "of its published runs over those of Megatron"
            factors.append(self._fitted(Message("runtime {runtime}", runtime=plan.runtime), walk.framework, "", what))
        if hasattr(plan.straggler_slowdown, "ndim") or plan.straggler_slowdown != 1:
            factors.append(walk.stragglers)
        made = Term.product("time of a step", "seconds", *factors, step) if factors else step.named("time of a step")
        return Term.sum("time of a step", made.named("on accelerators"), self._update) if self._update else made

    def _fitted(self, name: str, value: float, unit: str, what: str) -> Term:
        return Term.by(name, value, unit, basis="analytic", source=f"fitted: {SCRIPT}", version="1", procedure=what)

    @cached_property
    def _slowest(self) -> Passes:
        """One micro-batch on the stage that takes longest."""
        return max(self.walk.stages, key=lambda each: each.seconds)

    @cached_property
    def _one(self) -> Term:
        parts = [self._pass(self._slowest, when) for when in WHEN if self._slowest.computing(when)]
        seconds, size = self.walk.between
        if self.plan.pipeline_parallel_size > 1:
            parts.append(self._sent("to the next stage and back", seconds, size))
        return Term.sum("one micro-batch", *parts)

    def _pass(self, passes: Passes, when: str) -> Term:
        parts = [
            self._kernels(kind, spent) for (at, kind), spent in passes.kernels.items() if at == when and spent.seconds
        ]
        if passes.waits[when]:
            parts.append(self._waiting(passes.waits[when]))
        parts += [
            self._sent(Message("{group}, not hidden", group=group), spent.seconds, spent.bytes)
            for (at, group), spent in passes.sent.items()
            if at == when and spent.bytes
        ]
        return Term.sum(PASSES[when], *parts)

    def _kernels(self, kind: str, spent: Spent) -> Term:
        name, kernels = KINDS[kind], self.walk.kernels
        if kind == "move":
            bandwidth = kernels.bandwidth / self.rates.memory
            return Term.of(
                name, f.memory_seconds, M=spent.bytes, W=bandwidth, u=spent.bytes / (bandwidth * spent.seconds)
            )
        peak = kernels.chip.peak(kernels.wide)
        return Term.of(name, f.compute_seconds, C=spent.flops, n=1, P=peak, u=spent.flops / (peak * spent.seconds))

    def _waiting(self, seconds: Number) -> Term:
        return Term.by(
            "waiting for the host",
            seconds,
            "seconds",
            basis="analytic",
            source=f"fitted: {SCRIPT}",
            version="1",
            procedure="kernels asked for, times the host's seconds for one, less the seconds that kernels run",
            seconds_per_kernel=self.rates.host,
        )

    def _sent(self, name: str, seconds: Number, size: Number) -> Term:
        return Term.by(
            name,
            seconds,
            "seconds",
            basis="analytic",
            source="Thakur2005: a message of n bytes takes alpha + n beta",
            version="1",
            procedure="latency and bandwidth over the links of a group of ranks, less what runs beside compute",
            bytes=size,
            hidden=self.rates.hidden,
        )

    @property
    def seconds(self) -> Number:
        """Of a step; an array if the plan's sizes are arrays."""
        return self.walk.seconds()

    @cached_property
    def _update(self) -> Term | None:
        """The optimizer's time on the host, and of what it moves: nothing runs on the accelerator meanwhile."""
        if self.plan.offload_optimizer == "none":
            return None
        moved = self._sent("states and weights of the update", *self.walk.moving_once)
        return Term.sum(ON_HOST, self.walk.update_on_host, moved)

    @cached_property
    def traffic(self) -> Term:
        """Bytes that an accelerator of the fullest stage sends in a step."""
        return traffic(self.walk)

    @property
    def _optimizer(self) -> Term:
        walk = self.walk
        size = walk.updated * walk.updated_bytes * (1 - offloaded(self.plan, "optimizer"))
        return Term.of(
            "optimizer", f.memory_seconds, M=size, W=walk.kernels.bandwidth / self.rates.memory, u=self.rates.memory
        )

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
            spent.flops / (plan.expert_imbalance if kind == "experts" else 1)
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
        """Of all accelerators together."""
        tokens = self.plan.tokens_per_step
        return Term.of("tokens per second", f.tokens_per_second, D=tokens, tau=self.term.value)

    @cached_property
    def spent(self) -> dict[str, Number]:
        """Seconds of a step by what it waits for: together they are the step."""
        walk, count = self.walk, self.plan.num_microbatches
        passes = self._slowest
        found: defaultdict[str, Number] = defaultdict(int)
        for (_, kind), spent in passes.kernels.items():
            found[RESOURCES[kind]] += count * spent.seconds
        for (_, group), spent in passes.sent.items():
            found[Message("links, {group}", group=group)] += count * spent.seconds
        found["the host"] += count * sum(passes.waits.values())
        found["links between stages"] += count * walk.between[0]
        found["links, to the host"] += walk.moving[0]
        found["memory bandwidth"] += walk.optimizer
        for name, (seconds, _) in walk.data_parallel.items():
            found[Message("links, {group}", group=name)] += seconds
        found["pipeline bubble"] += walk.bubble
        found["fixed costs of a step"] += walk.rates.step
        made = {name: walk.framework * seconds for name, seconds in found.items() if seconds}
        if (slow := walk.stragglers.value) > 1:
            made["the slowest node"] = (slow - 1) * sum(made.values())
        if self._update:
            made["the host"] = made.get("the host", 0) + walk.update_on_host.value
            made["links, to the host"] = made.get("links, to the host", 0) + walk.moving_once[0]
        return made

    @property
    def bound_by(self) -> str:
        """What takes most of the step."""
        return max(self.spent, key=lambda name: self.spent[name])

    @property
    def band(self) -> Band | None:
        """Of the measured step times nearest in kind; None with an optimizer on the host, of which there are none."""
        if self._update:
            return None
        kind = (
            "moe"
            if any(work.kind == "experts" for layer in self.walk.step.layers.values() for work in layer.work)
            else "dense"
        )
        kind = kind if self.walk.kernels.is_measured else "new generation"
        return self.rates.band(kind, self.walk.plan.runtime)

    @cached_property
    def pieces(self) -> StepSeconds:
        """What a picture of the step is drawn from: seconds of each stage, of each kind of work, and of what follows
        the last backward.
        """
        walk, plan, factor = self.walk, self.plan, float(self.walk.factor)
        seen: dict[int, StageSeconds] = {}
        for each in walk.stages:
            if id(each) not in seen:
                there, again, back = (float(each.computing(when)) * factor for when in WHEN)
                sent = [float(each.sending(when)) * factor for when in WHEN]
                seen[id(each)] = StageSeconds(
                    there, again, back, sent[0], sent[1] + sent[2], float(each.times.weights) * factor
                )
        once = {name: seconds for name, (seconds, _) in walk.data_parallel.items()}
        ends = {"optimizer": walk.optimizer, "weights": once.pop("weights", 0), "fixed": walk.rates.step}
        after = {MOVING: walk.moving[0], **once, **ends}
        if self._update:
            after[ON_HOST] = self._update.value / factor  # no other part of the step is slowed by what slows kernels
        return StepSeconds(
            stages=tuple(seen[id(each)] for each in walk.stages),
            num_microbatches=int(plan.num_microbatches),
            chunks=int(plan.virtual_pipeline_size),
            schedule=schedule_of(plan).name,
            between=float(walk.between[0]) * factor,
            after=tuple(
                (
                    Message("{name}, once a step", name=name) if name in walk.data_parallel else name,
                    float(seconds) * factor,
                )
                for name, seconds in after.items()
            ),
            work=tuple(self._work(after, factor)),
        )

    def _work(self, after: Mapping[str, Number], factor: float) -> Iterator[Work]:
        """All seconds of a step, each once: what the leaves of `term` add up to."""
        times = self.plan.num_microbatches * factor
        for part in self._one.children:
            for leaf in part.children or (part,):
                when = part.name if part.children else "between stages"
                yield Work(when, leaf.name, float(times * leaf.value))
        if self.plan.pipeline_parallel_size > 1:
            yield Work("once a step", "pipeline bubble", float(self.walk.bubble) * factor)
        for name, seconds in after.items():
            yield Work("once a step", name, float(seconds) * factor)

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
        found = Timing(step.model, step.plan, cluster, step)
        return found if found.seconds else None
    except MissingDatum:
        return None


def seconds_of(model: Model, plan: TrainingPlan, cluster: Cluster) -> float | None:
    """Seconds of a step; None where nobody knows."""
    timing = timing_of(Step(model, plan, cluster), cluster)
    return float(timing.seconds) if timing else None


def _check(plan: TrainingPlan) -> None:
    if plan.objective != "sft":
        raise MissingDatum(
            Message(
                "the time of objective {objective} is not estimated: other models and generation take part in it.",
                objective=plan.objective,
            )
        )
    if not training_runtime(plan.runtime).is_timed:
        raise MissingDatum(
            Message(
                "the time of runtime {runtime} is not estimated: nobody published how fast its kernels are.",
                runtime=plan.runtime,
            )
        )
    check_update(plan)
