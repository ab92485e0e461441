"""The time of a training step as a tree: micro-batches by pass and kind of work, bubble, replicas, optimizer; and what follows from it."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.errors import MissingDatum
from tonnage.estimate._counted import Conventions
from tonnage.estimate._kernel_time import KINDS
from tonnage.estimate._rates import Band, Rates, rates
from tonnage.estimate._step_time import WHEN, Passes, Spent, StepTime
from tonnage.estimate.offload_traffic import offload_seconds, offload_traffic
from tonnage.estimate.pipeline_boxes import StageSeconds, StepSeconds, Work
from tonnage.estimate.storage import drives_of
from tonnage.estimate.traffic import traffic
from tonnage.estimate.training import Step
from tonnage.formula import Number, maximum
from tonnage.formulas import time as f
from tonnage.spec import Cluster, Link, TrainingPlan

PASSES = {"forward": "forward", "again": "run again", "backward": "backward"}
SCRIPT = "scripts/fit_rates.py"
# What a step waits for: the kinds of work that each stands for.
RESOURCES = {
    "matrix products": "compute", "products of experts": "compute", "attention": "compute", "recurrences": "compute",
    "reads and writes": "memory bandwidth", "waiting for the host": "the host", "optimizer": "memory bandwidth",
}  # fmt: skip


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
            self._sent(f"{name}, once a step", seconds, size) for name, (seconds, size) in walk.data_parallel.items()
        ]
        if self.plan.offload_activations != "none":
            parts.append(self._moving)
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
            factors.append(self._fitted(f"runtime {plan.runtime}", walk.framework, "", what))
        if hasattr(plan.straggler_slowdown, "ndim") or plan.straggler_slowdown != 1:
            factors.append(walk.stragglers)
        return Term.product("time of a step", "seconds", *factors, step) if factors else step.named("time of a step")

    def _fitted(self, name: str, value: float, unit: str, what: str) -> Term:
        return Term.by(name, value, unit, basis="analytic", source=f"fitted: {SCRIPT}", version="1", procedure=what)

    @cached_property
    def _one(self) -> Term:
        passes = max(self.walk.stages, key=lambda each: each.seconds)
        parts = [self._pass(passes, when) for when in WHEN if passes.computing(when)]
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
        parts += [self._sent(f"{group}, not hidden", spent.seconds, spent.bytes)
                  for (at, group), spent in passes.sent.items() if at == when and spent.bytes]  # fmt: skip
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
        return Term.by("waiting for the host", seconds, "seconds", basis="analytic", source=f"fitted: {SCRIPT}", version="1",
                       procedure="kernels asked for, times the host's seconds for one, less the seconds that kernels run",
                       seconds_per_kernel=self.rates.host)  # fmt: skip

    def _sent(self, name: str, seconds: Number, size: Number) -> Term:
        return Term.by(name, seconds, "seconds", basis="analytic", source="Thakur2005: a message of n bytes takes alpha + n beta", version="1",
                       procedure="latency and bandwidth over the links of a group of ranks, less what runs beside compute",
                       bytes=size, hidden=self.rates.hidden)  # fmt: skip

    @cached_property
    def _moving(self) -> Term:
        """What of moving activations out and back does not hide beside the passes that make and need them."""
        walk = self.walk
        stage = walk.step.walk().ranks[walk.fullest.rank].stage
        node = self.cluster.node
        drives = drives_of(node) if node else None
        disks = Link(name="drives of a node", bytes_per_second=drives.write_rate.value) if drives else None
        moved = offload_traffic(stage)
        taken = offload_seconds(moved, self.cluster, disks)
        running = self.plan.num_microbatches * sum(walk.stages[walk.fullest.rank].computing(when) for when in WHEN)
        exposed = walk.exposed(maximum(taken.link, taken.storage), running)
        return self._sent(
            "activations to the host and back, not hidden", exposed, moved.to_host.value + moved.from_host.value
        )

    @cached_property
    def seconds(self) -> Number:
        """Of a step; an array if the plan's sizes are arrays."""
        if self.plan.offload_activations == "none":
            return self.walk.seconds()
        return self.walk.seconds() + self.walk.framework * self._moving.value

    @cached_property
    def traffic(self) -> Term:
        """Bytes that an accelerator of the fullest stage sends in a step."""
        return traffic(self.walk)

    @property
    def _optimizer(self) -> Term:
        walk = self.walk
        size = walk.updated * walk.updated_bytes
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
        """Seconds of a step by what it waits for."""
        found: dict[str, Number] = {}

        def add(name: str, seconds: Number) -> None:
            found[name] = found.get(name, 0) + seconds

        count = self.plan.num_microbatches
        for part in (leaf for child in self._one.children for leaf in (child.children or (child,))):
            name = part.name.removesuffix(", not hidden")
            resource = RESOURCES.get(name) or (
                "links between stages" if name.startswith("to the next") else f"links, {name}"
            )
            add(resource, count * part.value)
        if self.plan.offload_activations != "none":
            add("links, to the host", self._moving.value)
        add("memory bandwidth", self.walk.optimizer)
        for name, (seconds, _) in self.walk.data_parallel.items():
            add(f"links, {name}", seconds)
        add("pipeline bubble", self.walk.bubble)
        add("fixed costs of a step", self.walk.rates.step)
        if (factor := self.walk.stragglers.value) > 1:
            add("the slowest node", (factor - 1) * sum(found.values()))
        return found

    @property
    def bound_by(self) -> str:
        """What takes most of the step."""
        return max(self.spent, key=lambda name: self.spent[name])

    @property
    def band(self) -> Band | None:
        """Of the measured step times nearest in kind."""
        kind = (
            "moe"
            if any(work.kind == "experts" for layer in self.walk.step.layers.values() for work in layer.work)
            else "dense"
        )
        return self.rates.bands.get(kind if self.walk.kernels.is_measured else "new generation")

    @cached_property
    def pieces(self) -> StepSeconds:
        """What a picture of the step is drawn from: seconds of each stage, of each kind of work, and of what follows the last backward."""
        walk, plan, factor = self.walk, self.plan, float(self.walk.framework)
        seen: dict[int, StageSeconds] = {}
        for each in walk.stages:
            if id(each) not in seen:
                there, again, back = (float(each.computing(when)) * factor for when in WHEN)
                sent = [float(each.sending(when)) * factor for when in WHEN]
                seen[id(each)] = StageSeconds(there, again, back, sent[0], sent[1] + sent[2])
        once = {f"{name}, once a step": seconds for name, (seconds, _) in walk.data_parallel.items()}
        weights = {name: once.pop(name) for name in list(once) if name.startswith("weights")}
        after = {**once, "optimizer": walk.optimizer, **weights, "fixed": walk.rates.step}
        return StepSeconds(
            stages=tuple(seen[id(each)] for each in walk.stages),
            num_microbatches=int(plan.num_microbatches),
            chunks=int(plan.virtual_pipeline_size),
            between=float(walk.between[0]) * factor,
            after=tuple((name, float(seconds) * factor) for name, seconds in after.items()),
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
            yield Work("once a step", name.removesuffix(", once a step"), float(seconds) * factor)

    def figures(self, model_flops: Number) -> dict[str, Any]:
        """Terms by their names in the document."""
        return {
            "mfu": self.utilization(model_flops),
            "hfu": self.hardware_utilization,
            "tokens_per_second": self.tokens_per_second,
            "conventions": Conventions(
                self.model, self.plan, self._peaks["tau"], self.walk.kernels.chip.peak(self.walk.kernels.wide)
            ),
        }


def seconds_of(model: Model, plan: TrainingPlan, cluster: Cluster) -> float | None:
    """Seconds of a step; None where nobody knows."""
    try:
        return float(Timing(model, plan, cluster).seconds)
    except MissingDatum:
        return None


def _check(plan: TrainingPlan) -> None:
    if plan.objective != "sft":
        raise MissingDatum(
            f"the time of objective {plan.objective} is not estimated: other models and generation take part in it."
        )
    if plan.runtime == "unsloth":
        raise MissingDatum("the time of runtime unsloth is not estimated: nobody published how fast its kernels are.")
    if (plan.offload_optimizer, plan.offload_parameters) != ("none", "none"):
        raise MissingDatum(
            "the time of a step whose optimizer runs on the host is not estimated: no source says how fast processors update."
        )
