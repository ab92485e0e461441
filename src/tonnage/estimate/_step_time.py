"""Seconds of one training step: kernels of each stage, what ranks send each other, the pipeline, the optimizer.

All numbers may be arrays.
"""

from functools import cached_property, reduce

from tonnage.architectures import Block
from tonnage.estimate import _layers as tapes
from tonnage.estimate._kernel_time import KernelTime
from tonnage.estimate._network import Network
from tonnage.estimate._rank import Stage
from tonnage.estimate._rates import Rates
from tonnage.estimate.training import Step
from tonnage.formula import Number, maximum
from tonnage.tape import Layer, Work


class Passes:
    """Seconds of one micro-batch through some layers: forward, run again, backward; and of these, how long ranks talk."""

    __slots__ = ("again", "backward", "forward", "sent_backward", "sent_forward")

    def __init__(self) -> None:
        self.forward: Number = 0
        self.again: Number = 0
        self.backward: Number = 0
        self.sent_forward: Number = 0
        self.sent_backward: Number = 0

    def add(self, other: "Passes", count: Number = 1) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + count * getattr(other, name))


class StepTime:
    """The walk of a step in seconds."""

    def __init__(self, step: Step, rates: Rates):
        assert step.cluster is not None
        self.step, self.plan, self.rates = step, step.plan, rates
        self.kernels = KernelTime(step, rates)
        self.dispatcher = getattr(step, "dispatcher", "alltoall")
        self.network = Network(step.cluster, rates)

    # ---- layers ----

    @cached_property
    def layers(self) -> dict[Block, Passes]:
        return {block: self._passes(layer, tapes.window_of(block)) for block, layer in self.step.layers.items()}

    def _passes(self, layer: Layer, window: int | None) -> Passes:
        made = Passes()
        overlap = getattr(self.step, "overlap", {})
        for work in layer.work:
            if work.kind == "exchange":
                seconds = self._exchange(work)
                name = work.name.replace(":", ".").rpartition(".")[2]
                is_expert = name == "all_to_all"
                if overlap.get("ep" if is_expert else "tp") or (self.plan.async_tensor_parallel and not is_expert) or name == "p2p":
                    seconds = seconds * (1 - self.rates.hidden)
                if work.when == "backward":
                    made.sent_backward = made.sent_backward + seconds
                else:
                    made.sent_forward = made.sent_forward + seconds
                    if work.when == "again":
                        made.again = made.again + seconds
                        made.sent_forward = made.sent_forward - seconds
                continue
            seconds = self.kernels.seconds(work, window)
            setattr(made, work.when, getattr(made, work.when) + seconds)
        return self._launched(layer, made)

    def _launched(self, layer: Layer, made: Passes) -> Passes:
        """Kernels start no faster than the host asks for them, unless graphs replay them."""
        if self.kernels.graphs == "full iteration":
            return made
        r = self.rates
        for when in ("forward", "again", "backward"):
            count = sum(work.when == when and work.kind != "exchange" for work in layer.work)
            if count and any(work.kind == "experts" and work.per.unit == "row" for work in layer.work):
                count += r.routed_operations * (1 if self.dispatcher == "hybridep" else r.alltoall_operations)
            if count:
                setattr(made, when, maximum(getattr(made, when), count * r.host))
        return made

    def _exchange(self, work: Work) -> Number:
        plan, name = self.plan, work.name.replace(":", ".").rpartition(".")[2]
        extent, size = next(iter(work.bytes.items()))
        amount = size * self.step.sizes.factor(extent)
        if name in ("p2p", "allgather", "a2a"):
            kind = "all_to_all" if name == "a2a" else "all_gather"
            return self.network.seconds(kind, amount * (1 if name == "a2a" else plan.context_parallel_size), plan.context_parallel_size, plan.tensor_parallel_size)
        if name == "all_to_all":
            return self.network.seconds("all_to_all", amount, plan.expert_parallel_size, plan.expert_tensor_parallel_size)
        if extent.unit == "row":
            return self.network.seconds("all_gather", amount, plan.expert_tensor_parallel_size)
        if extent.split == "whole" and self.step.sizes.sequence_parallel:
            amount = amount * plan.tensor_parallel_size
        kind = {"gather": "all_gather"}.get(name, name)
        return self.network.seconds(kind, amount, plan.tensor_parallel_size)

    def stage(self, stage: Stage) -> Passes:
        """One micro-batch through a stage."""
        made = Passes()
        for block, count in stage.layers:
            made.add(self._with_gathers(block), count)
        loss = self.step.framework.loss(stage)
        if loss is not None:
            made.add(self._passes(loss, None))
        return made

    # ---- what is sharded ----

    def _with_gathers(self, block: Block) -> Passes:
        """ZeRO-3 gathers a layer before it runs, beside the one that runs."""
        plain = self.layers[block]
        plan, step = self.plan, self.step
        if plan.zero_stage < 2 or plan.runtime not in ("fsdp2", "transformers", "torchtune", "deepspeed"):
            return plain
        group = plan.data_parallel_size * plan.context_parallel_size / plan.replicate_size
        stride = plan.tensor_parallel_size
        held = step.held[block].value
        width = step.recipe.compute_bytes
        gather = self.network.seconds("all_gather", held * (1 if plan.float8_all_gather else width), group, stride)
        reduce_width = 4 if plan.runtime == "fsdp2" else width
        scatter = self.network.seconds("reduce_scatter", held * reduce_width, group, stride)
        made = Passes()
        made.add(plain)
        hidden = self.rates.hidden
        forward = plain.forward + plain.sent_forward
        made.forward = made.forward + _exposed(gather, forward, hidden)
        again = gather if plan.zero_stage == 3 else 0
        backward = plain.again + plain.backward + plain.sent_backward
        made.backward = made.backward + _exposed(again + scatter, backward, hidden)
        return made

    # ---- the step ----

    @cached_property
    def stages(self) -> list[Passes]:
        return [self.stage(stage) for stage in self.step.stages]

    @cached_property
    def microbatch(self) -> list[Number]:
        """Seconds of a micro-batch on each stage, forward and backward."""
        kept = 1 - 0.0
        return [each.forward + each.again + each.backward + kept * (each.sent_forward + each.sent_backward) for each in self.stages]

    def seconds(self) -> Number:
        """One step."""
        return self.pipeline() + self.data_parallel() + self.optimizer() + self.rates.step_overhead

    def pipeline(self) -> Number:
        """1F1B: all micro-batches through the slowest stage, and the others' share of the first and the last one."""
        plan, each = self.plan, self.microbatch
        slowest = reduce(maximum, each)
        rest = sum(each) - slowest
        sent: Number = 0
        if plan.pipeline_parallel_size > 1:
            size = plan.sequence_length * plan.micro_batch_size / plan.context_parallel_size * self.step.model.hidden_size * 2
            size = size / (plan.tensor_parallel_size if self.step.sizes.sequence_parallel else 1)
            stride = plan.tensor_parallel_size * plan.context_parallel_size * plan.data_parallel_size
            sent = self.network.send(size, stride) * 2 * plan.virtual_pipeline_size
        return plan.num_microbatches * (slowest + sent) + rest / plan.virtual_pipeline_size

    def data_parallel(self) -> Number:
        """Gradients summed and weights gathered once a step, beside the backward of the last micro-batch."""
        plan, step = self.plan, self.step
        if plan.zero_stage >= 2:
            return 0
        group = plan.data_parallel_size * plan.context_parallel_size
        held = sum(count * step.held[block].value for block, count in step.stages[0].layers)
        scatter = self.network.seconds("reduce_scatter", held * step.recipe.main_gradient_bytes, group, plan.tensor_parallel_size)
        gather = self.network.seconds("all_gather", held * step.recipe.compute_bytes, group, plan.tensor_parallel_size)
        beside = self.stages[0].backward
        return _exposed(scatter, beside, self.rates.hidden) + _exposed(gather, self.stages[0].forward, self.rates.hidden)

    def optimizer(self) -> Number:
        """Reads and writes of the states that a rank holds."""
        step = self.step
        shard = step.shard if self.plan.zero_stage >= 1 else step.held
        count = sum(n * shard[block].value for block, n in step.stages[0].layers)
        return count * self.rates.optimizer_bytes / self.kernels.bandwidth


def _exposed(sending: Number, running: Number, hidden: float) -> Number:
    """What of `sending` is not hidden beside what runs."""
    return sending - hidden * _smaller(sending, running)


def _smaller(x: Number, y: Number) -> Number:
    return x + y - maximum(x, y)
