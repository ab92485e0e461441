"""Seconds of one training step as a tree: micro-batches of the slowest stage, the pipeline's bubble, what ranks send
once a step, the optimizer. A search reads the value of the same tree, over arrays of plans.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cache, cached_property, reduce
from typing import NamedTuple

from tonnage.architectures import Block
from tonnage.estimate.hardware.network import Collective, Sending
from tonnage.estimate.host.traffic import OffloadTraffic, offload_traffic, over_host, update_on_host
from tonnage.estimate.plan.schedule import bubble
from tonnage.estimate.site.terms import Correction, calibrated, training_correction
from tonnage.estimate.step.method import frozen_below, images_flops
from tonnage.estimate.step.points import running
from tonnage.estimate.step.rank import Stage, expert_parameters
from tonnage.estimate.step.stage import StageMemory
from tonnage.estimate.step.states import States, offloaded, update_flops
from tonnage.estimate.step_time.layer_time import SCRIPT, WHEN, LayerTime, Passes
from tonnage.formulas import time as f
from tonnage.kernel.formula import Number, is_any, maximum, minimum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.optimizers import optimizer

MOVING, ON_HOST = "to the host and back, not hidden", "optimizer on the host"


class Part(NamedTuple):
    """What a step waits for once, besides its micro-batches: seconds before what slows the whole step. `name`: in
    pictures; `resource`: what the time goes by.
    """

    name: str
    term: Term
    resource: str


@cache
def _once(name: str) -> Message:
    return Message("{name}, once a step", name=name)


@cache
def _links(group: str) -> Message:
    return Message("links, {group}", group=group)


class StepTime(LayerTime):
    """The walk of a step in seconds."""

    def stage(self, stage: Stage) -> Passes:
        """The work of one micro-batch in a stage."""
        total = Passes()
        trains = dict(self._trains(stage))
        cached = self.plan.post_training.cached_embeddings
        for block, count in stage.layers:
            passes, above = self.with_gathers(block) if self.gathers else self.layers[block], trains.get(block, 0)
            total.add(passes, above)
            if cached:  # embeddings of the whole batch come first, without gradients
                total.add(passes.only("forward"), count)
            if count > above:  # nothing in or below these trains: they have no backward
                total.add(passes.only("forward"), count - above)
        loss = self.step.framework.loss(stage)
        head = self._passes(loss.work, None) if loss is not None else Passes()
        total.add(head)
        if self.gathers:
            self._gather_ends(total, head, stage)
        if stage.towers and self.tower is not None:
            total.add(self.tower)
        return total

    @cached_property
    def tower(self) -> Passes | None:
        """The vision tower over the images of a micro-batch, its ends as fast as its layers; None without images."""
        tower, plan = self.step.tower, self.plan
        if tower is None:
            return None
        flops = images_flops(self.step.model, plan, plan.micro_batch_size)
        ends = flops.children[-1].value
        share = flops.value / (flops.value - ends)
        total, times = Passes(), LayerTime(tower, self.rates)
        for block, count in tower.stages[0].layers:
            passes = times.layers[block]
            total.add(passes if plan.trains_tower else passes.only("forward"), count * share)
        return total

    def _trains(self, stage: Stage) -> tuple[tuple[Block, int], ...]:
        """The layers of a stage that have a backward."""
        frozen = frozen_below(self.step.model, self.plan)
        return tuple(Counter(running(stage, frozen)).items()) if frozen else stage.layers

    # ---- what is sharded ----

    @cached_property
    def gathers(self) -> bool:
        """Gradients, and with ZeRO-3 weights, travel layer by layer in every micro-batch."""
        return self.plan.zero_stage == 3 or (self.plan.zero_stage == 2 and self.step.runtime.shards_units)

    @cached_property
    def shards(self) -> Number:
        """Ranks that share one copy of the states."""
        return self.plan.data_parallel_size * self.plan.context_parallel_size / self.plan.replicate_size

    def with_gathers(self, block: Block) -> Passes:
        """The next layer's weights come, and the last one's gradients go, beside the layer that runs."""
        plain, step = self.layers[block], self.step
        passes = Passes()
        passes.add(plain)
        again = 1 if self.plan.zero_stage == 3 else 0
        held, trained, experts = step.held[block].value, step.trained_held[block].value, self._experts([(block, 1)])
        self._gather(passes, plain, held, trained, again, experts)
        return passes

    def _experts(self, layers: Iterable[tuple[Block, int]]) -> Number | None:
        """Parameters of layers of which every expert rank has others; None where there are no such ranks."""
        if not is_any(self.plan.expert_parallel_size > 1):
            return None
        return sum(count * expert_parameters(block, self.step.whole) for block, count in layers)

    def _gather_ends(self, passes: Passes, head: Passes, stage: Stage) -> None:
        """Tables and head travel beside the head's products; none of them is given up between forward and backward."""
        of, step = States(self.step, stage), self.step
        held = of.whole.value - sum(count * step.held[block].value for block, count in stage.layers)
        trained = of.trained.value - sum(count * step.trained_held[block].value for block, count in self._trains(stage))
        self._gather(passes, head, held, trained, 0, None)

    def _gather(
        self, passes: Passes, computed: Passes, held: Number, trained: Number, again: int, experts: Number | None
    ) -> None:
        """Weights are gathered for forward, and maybe `again` for backward; gradients are scattered; all of it beside
        what runs.

        `experts`: of `held`; they train all or not at all. ZeRO++ (Wang2023) sends weights in 8 bit, gradients in 4,
        and gathers for backward within a group that has a copy.
        """
        plan, recipe, framework = self.plan, self.step.recipe, self.step.framework
        narrow = plan.kernels.float8_all_gather or plan.deepspeed.zero_quantized_weights
        width = 1 if narrow else framework.gathered_width
        reduce_width = 0.5 if plan.deepspeed.zero_quantized_gradients else framework.reduced_width
        gather = second = self.among("all_gather", held, experts, width)
        if is_any(plan.deepspeed.zero_hpz_partition_size > 1):
            size = held * recipe.gathered_bytes
            second = self.network.collective(
                "all_gather", size, plan.deepspeed.zero_hpz_partition_size, plan.tensor_parallel_size
            )
        routed = minimum(experts, trained) if experts is not None else None
        scatter = self.among("reduce_scatter", trained, routed, reduce_width)
        if self.step.runtime.reduces_once:  # after the last micro-batch: a part of it for each of them
            scatter = Sending(scatter.seconds / plan.num_microbatches, scatter.sent / plan.num_microbatches)
        for when, seconds, size in (
            ("forward", gather.seconds, gather.sent),
            ("backward", again * second.seconds + scatter.seconds, again * second.sent + scatter.sent),
        ):
            running = sum(
                computed.computing(when_computed)
                for when_computed in WHEN
                if (when_computed == "forward") == (when == "forward")
            )
            exposed = self.exposed(seconds, running)
            passes.sent[when, "sharded states"].add(exposed, 0, size, hidden=seconds - exposed)

    def among(self, kind: Collective, held: Number, experts: Number | None, width: float) -> Sending:
        """Parameters of `width` bytes among those that share the states; of them those of `experts` among the fewer
        that share these.
        """
        plan = self.plan
        dense = held if experts is None else held - experts
        dense_sending = self.network.collective(kind, dense * width, self.shards, plan.tensor_parallel_size)
        if experts is None:
            return dense_sending
        others = plan.expert_parallel_size * plan.expert_tensor_parallel_size
        sharing = maximum(self.shards * plan.tensor_parallel_size / others, 1)
        routed = self.network.collective(kind, experts * width, sharing, others)
        return Sending(dense_sending.seconds + routed.seconds, dense_sending.sent + routed.sent)

    def exposed(self, sending: Number, running: Number) -> Number:
        """The part of `sending` that is not hidden beside what runs."""
        return sending - self.rates.hidden * minimum(sending, running)

    # ---- the step ----

    @cached_property
    def stages(self) -> list[Passes]:
        """One micro-batch through each stage; stages of the same layers take the same time."""
        known: dict[tuple[object, ...], Passes] = {}
        passes = []
        for stage in self.step.stages:
            key = stage.layers, self._trains(stage), stage.before, stage.after
            if key not in known:
                known[key] = self.stage(stage)
            passes.append(known[key])
        return passes

    @cached_property
    def between(self) -> tuple[Number, Number]:
        """Seconds and bytes of handing a micro-batch on to the next stage, and its gradient back."""
        plan, sizes = self.plan, self.step.sizes
        if plan.pipeline_parallel_size == 1:
            return 0, 0
        hidden_bytes = sizes.s * sizes.b / sizes.c * self.step.model.hidden_size * self.step.recipe.activation_bytes
        # Each tensor rank hands on a part: with sequence parallelism its own, else what the next one puts together
        # (Narayanan2021, sec. 4.1).
        scatters = sizes.sequence_parallel or self.step.runtime.scatters_stages
        size, gather = hidden_bytes / sizes.t if scatters else hidden_bytes, 0
        if scatters and not sizes.sequence_parallel:
            gather = self.network.collective("all_gather", hidden_bytes, plan.tensor_parallel_size, 1).seconds
        stride = plan.tensor_parallel_size * plan.context_parallel_size * plan.data_parallel_size
        count = 2 * plan.virtual_pipeline_size
        return count * (self.network.send(size, stride) + gather), count * size

    @cached_property
    def one(self) -> Term:
        """One micro-batch on the stage that takes longest, and what that hands on."""
        if self.slowest is not None:
            parts = self.tree(self.slowest)
        else:
            parts = [
                Term.max(
                    "slowest stage", *(Term.sum("stage", *self.tree(passes), unit="seconds") for passes in self.kinds)
                )
            ]
        if self.plan.pipeline_parallel_size > 1:
            parts.append(self.sent("to the next stage and back", *self.between))
        return Term.sum("one micro-batch", *parts)

    @cached_property
    def slowest(self) -> Passes | None:
        """One micro-batch on the stage that takes longest; None where that is not the same stage in all plans of an
        array.
        """
        most = reduce(maximum, (passes.seconds for passes in self.kinds))
        return next((passes for passes in self.kinds if not is_any(passes.seconds < most)), None)

    @cached_property
    def kinds(self) -> list[Passes]:
        """One stage of each kind: those that do the same are counted once."""
        return list({id(passes): passes for passes in self.stages}.values())

    @cached_property
    def waiting(self) -> Term:
        """What a stage waits while the pipeline fills and drains."""
        return bubble(self.plan, [passes.times for passes in self.stages])

    @property
    def bubble(self) -> Number:
        """Seconds that a stage waits while the pipeline fills and drains."""
        return self.waiting.value if self.plan.pipeline_parallel_size > 1 else 0

    @cached_property
    def parts(self) -> list[Part]:
        """What a step waits for once, one after the other."""
        parts = (
            [Part("pipeline bubble", self.waiting, "pipeline bubble")] if self.plan.pipeline_parallel_size > 1 else []
        )
        for name, (sending, cover) in self.once_a_step.items():
            exposed = self.exposed(sending.seconds, cover)
            parts.append(Part(name, self.sent(_once(name), exposed, sending.sent), _links(name)))
        if self.moves_beside:
            parts.append(Part(MOVING, self.sent(MOVING, *self.moving), "links, to the host"))
        parts.append(Part("optimizer", self.optimizer, "memory bandwidth"))
        why = "data, metrics, synchronisation: no kernel and no message explains them"
        fixed = self._fitted("fixed", self.rates.step, "seconds", why)
        return [*parts, Part("fixed", fixed, "fixed costs of a step")]

    @cached_property
    def term(self) -> Term:
        """Seconds of a step: what its slowest stage does, and what all wait for besides."""
        return self.with_update(self.on_accelerators)

    def with_update(self, on_accelerators: Term) -> Term:
        """Seconds of a step of so many on the accelerators, and what the host does after them."""
        step = on_accelerators
        if self.update is not None:
            step = Term.sum("time of a step", on_accelerators.named("on accelerators"), self.update)
        return calibrated(step, self.correction)

    @cached_property
    def on_accelerators(self) -> Term:
        """Seconds of a step without an update on the host."""
        plan = self.plan
        count = Term.of("micro-batches of a step", f.microbatches, m=plan.num_microbatches)
        micro_batches = Term.product("micro-batches of the slowest stage", "seconds", count, self.one)
        step = Term.sum("step", micro_batches, *(part.term for part in self.parts))
        factors = []
        if self.framework != 1:
            what = "of its published runs over those of Megatron"
            factors.append(self._fitted(Message("runtime {runtime}", runtime=plan.runtime), self.framework, "", what))
        if hasattr(plan.imbalance.straggler_slowdown, "ndim") or plan.imbalance.straggler_slowdown != 1:
            factors.append(self.stragglers)
        return Term.product("time of a step", "seconds", *factors, step) if factors else step.named("time of a step")

    @cached_property
    def correction(self) -> Correction | None:
        """What the site's own runs say of steps like this one."""
        return training_correction("step_time", self.step.model, self.plan, self.step.cluster)

    @property
    def calibration(self) -> Number:
        """The factor of own runs on all of a step; 1 where nobody asked for it."""
        return 1 if self.correction is None else self.correction.factor

    def seconds(self) -> Number:
        """Seconds of one step; an array if sizes of the plan are."""
        return self.term.value

    def _fitted(self, name: str, value: float, unit: str, what: str) -> Term:
        return Term.by(name, value, unit, basis="analytic", source=f"fitted: {SCRIPT}", version="1", procedure=what)

    @cached_property
    def once_a_step(self) -> dict[str, tuple[Sending, Number]]:
        """What data-parallel ranks send once a step, and the seconds of kernels that it can run beside."""
        plan, step = self.plan, self.step
        sendings: dict[str, tuple[Sending, Number]] = {}
        if self.gathers:
            if self.has_replicas:
                sendings["gradients of replicas"] = self._of_replicas()
            return sendings
        stage = self.fullest
        experts = self._experts(self._trains(stage)) if step.trains_all else None
        held, first = self._states.trained.value, self.stages[stage.rank]
        kind: Collective = "reduce_scatter" if plan.zero_stage else "all_reduce"
        sums = self.among(kind, held, experts, step.recipe.main_gradient_bytes)
        sendings["gradients"] = sums, first.computing("backward")
        if plan.zero_stage:
            gather = self.among("all_gather", held, experts, step.recipe.gathered_bytes)
            sendings["weights"] = gather, first.computing("forward")
        return sendings

    @property
    def has_replicas(self) -> bool:
        return is_any(self.plan.replicate_size > 1)

    def _of_replicas(self) -> tuple[Sending, Number]:
        plan, step = self.plan, self.step
        held = self._states.trained_shard.value
        stride = plan.tensor_parallel_size * self.shards
        sending = self.network.collective("all_reduce", held * step.recipe.reduce_bytes, plan.replicate_size, stride)
        return sending, self.stages[self.fullest.rank].computing("backward")

    @cached_property
    def fullest(self) -> Stage:
        """The stage with most layers that train."""
        return max(self.step.stages, key=lambda stage: sum(count for _, count in self._trains(stage)))

    @cached_property
    def updated(self) -> Number:
        """Parameters whose states a rank updates."""
        return (self._states.trained_shard if self.plan.zero_stage else self._states.trained).value

    @cached_property
    def _states(self) -> States:
        """What the fullest stage keeps: tables and head are among it."""
        return States(self.step, self.fullest)

    @cached_property
    def optimizer(self) -> Term:
        """Seconds of reads and writes of the states that a rank holds, and of what the update multiplies."""
        work = self._update_work
        if type(work) is int:
            return self._states_moved
        kernels, chosen = self.kernels, optimizer(self.plan.optimizer)
        peak = kernels.chip.peak(chosen.work_type if chosen.work_type in kernels.chip.dense_flops else kernels.wide)
        share = kernels.shares.matrix["bf16"] * kernels.clock
        products = Term.of("products of the update", f.compute_seconds, C=work, n=1, P=peak, u=share)
        return Term.sum("optimizer", self._states_moved.named("states and weights"), products)

    @cached_property
    def _update_work(self) -> Number:
        """FLOP of the update of the parameters that a rank updates: shards of a matrix go to the rank that multiplies
        it, so that ranks share the matrices as they share the states.
        """
        step = self.step
        if optimizer(self.plan.optimizer).work is None or not step.trains_all:
            return 0
        return update_flops(self.plan.optimizer, step.model) * self.updated / step.model.num_parameters()

    @cached_property
    def _states_moved(self) -> Term:
        """Seconds of reads and writes of the states that a rank holds."""
        size = self.updated * self.updated_bytes * (1 - offloaded(self.plan, "optimizer"))
        bandwidth = self.kernels.bandwidth / self.rates.memory
        return Term.of("optimizer", f.memory_seconds, M=size, W=bandwidth, u=self.rates.memory)

    @cached_property
    def updated_bytes(self) -> float:
        """Read and written for each parameter: its gradient, the weights that are updated and their copy for
        products, and the optimizer's states, both ways. AdamW with fp32 masters: 30.
        """
        recipe, square = self.step.updates, 4096
        held = optimizer(self.plan.optimizer).total_bytes(square, square, update_bytes=recipe.update_bytes) / square**2
        copied = recipe.compute_bytes if recipe.master_bytes else 0
        return float(recipe.main_gradient_bytes + 2 * recipe.update_bytes + 2 * held + copied)

    @property
    def moves_beside(self) -> bool:
        """Something goes to the host, or comes from there, while forward and backward run."""
        plan = self.plan
        return (plan.offload.offload_activations, plan.offload.offload_optimizer, plan.offload.offload_parameters) != (
            "none",
            "none",
            "none",
        )

    @cached_property
    def moving(self) -> tuple[Number, Number]:
        """Over the host link in a step: seconds that do not hide beside the passes that make and need what is moved,
        and bytes.
        """
        if not self.moves_beside:
            return 0, 0
        seconds, size = over_host(self._offloaded.beside, self.step.cluster)
        running = self.plan.num_microbatches * sum(self.stages[self.fullest.rank].computing(when) for when in WHEN)
        return self.exposed(seconds, running), size

    @cached_property
    def _offloaded(self) -> OffloadTraffic:
        return offload_traffic(StageMemory(self.step, self.fullest))

    @cached_property
    def update(self) -> Term | None:
        """The optimizer's time on the host, and of what it moves: nothing runs on the accelerator meanwhile."""
        cluster = self.step.cluster
        assert cluster is not None
        if self.plan.offload.offload_optimizer == "none":
            return None
        processors = update_on_host(self.plan, cluster, self.updated, self.updated_bytes)
        moved = self.sent("states and weights of the update", *over_host(self._offloaded.once, cluster))
        return Term.sum(ON_HOST, processors, moved)

    @cached_property
    def framework(self) -> float:
        """What this runtime takes beyond the kernels that are counted, as a factor."""
        return self.rates.frameworks.get(self.plan.runtime, 1.0)

    @property
    def factor(self) -> Number:
        """By which all of a step takes longer than its kernels and links say."""
        return self.framework * self.stragglers.value * self.calibration

    @cached_property
    def stragglers(self) -> Term:
        """The factor by which slow nodes hold up the step; 1 where nobody said that there are any."""
        plan, cluster = self.plan, self.step.cluster
        assert cluster is not None
        return Term.of(
            "stragglers",
            f.straggler_factor,
            kappa=plan.imbalance.straggler_slowdown,
            q_slow=plan.imbalance.straggler_share,
            nodes=cluster.num_nodes,
        )
