"""Seconds of one training step: kernels of each stage, what ranks send each other, the pipeline, the optimizer.

The numbers are for searching and may be arrays; `estimate.time` makes trees of them.
"""

from collections import Counter, defaultdict
from functools import cached_property, reduce

from tonnage.architectures import Block
from tonnage.breakdown import Term
from tonnage.estimate import _layers as tapes
from tonnage.estimate._host_update import update_on_host
from tonnage.estimate._kernel_time import KernelTime
from tonnage.estimate._method import frozen_below
from tonnage.estimate._network import Collective, Network, Sending
from tonnage.estimate._offload import offloaded
from tonnage.estimate._passes import WHEN, Passes
from tonnage.estimate._points import running
from tonnage.estimate._rank import Stage
from tonnage.estimate._rates import Rates
from tonnage.estimate._schedule import bubble
from tonnage.estimate._stage import StageMemory
from tonnage.estimate._states import States
from tonnage.estimate.offload_traffic import OffloadTraffic, offload_traffic, over_host
from tonnage.estimate.training import Step
from tonnage.formula import Number, maximum, minimum
from tonnage.formulas.time import straggler_factor
from tonnage.optimizers import optimizer
from tonnage.tape import Exchange, Extent, Layer, Work

FULL_GRAPH = "full"  # the host replays a whole step


class StepTime:
    """The walk of a step in seconds."""

    def __init__(self, step: Step, rates: Rates):
        assert step.cluster is not None
        self.step, self.plan, self.rates = step, step.plan, rates
        self.kernels = KernelTime(step, rates)
        self.network = Network(step.cluster, rates)
        self._sent: dict[tuple[object, ...], Sending] = {}

    # ---- layers ----

    @cached_property
    def layers(self) -> dict[Block, Passes]:
        """One micro-batch through one layer of each kind."""
        return {block: self._passes(layer, tapes.window_of(block)) for block, layer in self.step.layers.items()}

    def _passes(self, layer: Layer, window: int | None) -> Passes:
        made = Passes()
        counts: defaultdict[str, Number] = defaultdict(int)
        for work in layer.work:
            if work.exchange is not None:
                beside, sending = self._beside(work.exchange), self._sending(work.exchange, work)
                seconds = sending.seconds * (1 - beside)
                made.sent[work.when, work.exchange.group].add(seconds, 0, sending.sent, hidden=sending.seconds * beside)
            else:
                counts[work.when] += self._asked(work)
                spent = self.kernels.seconds(work, window)
                made.kernels[work.when, work.kind].add(*spent)
                made.weights = made.weights + spent[0] if work.wgrad else made.weights
        if self.plan.cuda_graph != FULL_GRAPH:
            self._wait(made, counts, any(work.kind == "experts" and work.per.unit == "row" for work in layer.work))
        return made

    def _asked(self, work: Work) -> Number:
        """Kernels that the host asks for: of experts one after the other, of what a graph replays none."""
        if work.kind == "experts":
            return self.rates.expert_kernels * self.kernels.experts * self.kernels.around_experts
        return 0 if "attn" in self._replayed else work.kernels

    @cached_property
    def _replayed(self) -> frozenset[str]:
        """Modules that graphs replay."""
        return frozenset(self.plan.cuda_graph.split(","))

    def _wait(self, made: Passes, counts: dict[str, Number], routes: bool) -> None:
        """Kernels start no faster than the host asks for them; a router asks for many small ones."""
        r = self.rates
        waits = r.alltoall if self.plan.moe_token_dispatcher_type == "alltoall" else 1
        asks = routes and "moe_router" not in self._replayed
        more = r.router_kernels * waits * self.kernels.around_experts if asks else 0
        for when, count in counts.items():
            made.waits[when] = maximum((count + more) * r.host - made.computing(when), 0)

    @cached_property
    def groups(self) -> dict[str, tuple[Number, Number]]:
        """Ranks of a group that exchanges inside of layers, and how far apart they are: the order in which all runtimes number ranks."""
        t, q = self.plan.tensor_parallel_size, self.plan.expert_tensor_parallel_size
        return {
            "tensor parallel": (t, 1),
            "context parallel": (self.plan.context_parallel_size, t),
            "expert parallel": (self.plan.expert_parallel_size, q),
            "expert tensor parallel": (q, 1),
        }

    def _sending(self, exchange: Exchange, work: Work) -> Sending:
        """Seconds and bytes of a rank; many exchanges of a layer are alike."""
        key = exchange.group, exchange.collective, *work.bytes.items()
        if key not in self._sent:
            self._sent[key] = self._sending_of(exchange, work)
        return self._sent[key]

    def _sending_of(self, exchange: Exchange, work: Work) -> Sending:
        group, collective = exchange.group, exchange.collective
        ranks, stride = self.groups[group]
        size = self.kernels.moved(work)
        if self._is_part(exchange, next(iter(work.bytes))):
            size = size * ranks
        if group == "expert parallel" and self.plan.moe_token_dispatcher_type == "flex":
            return self.network.dispatch(size, ranks, stride, self.kernels.chosen)
        # around a ring each rank's part passes all others, as in a gather
        return self.network.collective("all_gather" if collective == "send" else collective, size, ranks, stride)

    def _is_part(self, exchange: Exchange, extent: Extent) -> bool:
        """Whether the bytes of an exchange are of what one rank has, not of all that the group has."""
        if exchange.group == "context parallel":
            return exchange.collective != "all_to_all"
        if exchange.group == "expert tensor parallel":
            return extent.split == "expert"
        return exchange.group == "tensor parallel" and extent.split == "whole" and self.step.sizes.sequence_parallel

    def _beside(self, exchange: Exchange) -> float:
        """The share of an exchange that runs beside compute."""
        plan = self.plan
        hides = {"tensor parallel": plan.tp_comm_overlap or plan.async_tensor_parallel, "context parallel": exchange.beside,
                 "expert parallel": plan.overlap_moe_expert_parallel_comm}  # fmt: skip
        return self.rates.hidden if hides.get(exchange.group) else 0

    def stage(self, stage: Stage) -> Passes:
        """One micro-batch through a stage."""
        made = Passes()
        trains = dict(self._trains(stage))
        for block, count in stage.layers:
            passes, above = self._with_gathers(block) if self.gathers else self.layers[block], trains.get(block, 0)
            made.add(passes, above)
            if count > above:  # nothing in or below these trains: they have no backward
                made.add(passes.only("forward"), count - above)
        loss = self.step.framework.loss(stage)
        head = self._passes(loss, None) if loss is not None else Passes()
        made.add(head)
        if self.gathers:
            self._gather_ends(made, head, stage)
        return made

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

    def _with_gathers(self, block: Block) -> Passes:
        """The next layer's weights come, and the last one's gradients go, beside the layer that runs."""
        plain, step = self.layers[block], self.step
        made = Passes()
        made.add(plain)
        again = 1 if self.plan.zero_stage == 3 else 0
        self._gather(made, plain, step.held[block].value, step.trained_held[block].value, again)
        return made

    def _gather_ends(self, made: Passes, head: Passes, stage: Stage) -> None:
        """Tables and head travel beside the head's products; none of them is given up between forward and backward."""
        of, step = States(self.step, stage), self.step
        held = of.whole.value - sum(count * step.held[block].value for block, count in stage.layers)
        trained = of.trained.value - sum(count * step.trained_held[block].value for block, count in self._trains(stage))
        self._gather(made, head, held, trained, 0)

    def _gather(self, made: Passes, beside: Passes, held: Number, trained: Number, again: int) -> None:
        """Weights are gathered for forward, and maybe `again` for backward; gradients are scattered; all of it beside what runs."""
        plan, recipe, stride = self.plan, self.step.recipe, self.plan.tensor_parallel_size
        width = 1 if plan.float8_all_gather else recipe.gathered_bytes
        reduce_width = recipe.reduce_bytes if self.step.runtime.shards_units else recipe.gradient_bytes
        gather = self.network.collective("all_gather", held * width, self.shards, stride)
        scatter = self.network.collective("reduce_scatter", trained * reduce_width, self.shards, stride)
        for when, seconds, size in (
            ("forward", gather.seconds, gather.sent),
            ("backward", again * gather.seconds + scatter.seconds, again * gather.sent + scatter.sent),
        ):
            running = sum(beside.computing(each) for each in WHEN if (each == "forward") == (when == "forward"))
            exposed = self.exposed(seconds, running)
            made.sent[when, "sharded states"].add(exposed, 0, size, hidden=seconds - exposed)

    def exposed(self, sending: Number, running: Number) -> Number:
        """What of `sending` is not hidden beside what runs."""
        return sending - self.rates.hidden * minimum(sending, running)

    # ---- the step ----

    @cached_property
    def stages(self) -> list[Passes]:
        """One micro-batch through each stage; stages of the same layers take the same time."""
        known: dict[tuple[object, ...], Passes] = {}
        for stage in self.step.stages:
            key = stage.layers, self._trains(stage), stage.after
            if key not in known:
                known[key] = self.stage(stage)
        return [known[stage.layers, self._trains(stage), stage.after] for stage in self.step.stages]

    @cached_property
    def between(self) -> tuple[Number, Number]:
        """Seconds and bytes of handing a micro-batch on to the next stage, and its gradient back."""
        plan, sizes = self.plan, self.step.sizes
        if plan.pipeline_parallel_size == 1:
            return 0, 0
        whole = sizes.s * sizes.b / sizes.c * self.step.model.hidden_size * self.step.recipe.activation_bytes
        size, gather = whole, 0
        if sizes.sequence_parallel:
            size = whole / sizes.t
        elif (
            plan.runtime == "megatron"
        ):  # a part from each tensor rank, put together over the links inside: Narayanan2021, sec. 4.1
            size, gather = (
                whole / sizes.t,
                self.network.collective("all_gather", whole, plan.tensor_parallel_size, 1).seconds,
            )
        stride = plan.tensor_parallel_size * plan.context_parallel_size * plan.data_parallel_size
        count = 2 * plan.virtual_pipeline_size
        return count * (self.network.send(size, stride) + gather), count * size

    @cached_property
    def slowest(self) -> Number:
        """Seconds of a micro-batch on the stage that takes longest."""
        return reduce(maximum, (each.seconds for each in self.stages))

    @cached_property
    def waiting(self) -> Term:
        """What a stage waits while the pipeline fills and drains."""
        return bubble(self.plan, [each.times for each in self.stages])

    @property
    def bubble(self) -> Number:
        """Its seconds."""
        return self.waiting.value if self.plan.pipeline_parallel_size > 1 else 0

    @cached_property
    def data_parallel(self) -> dict[str, tuple[Number, Number]]:
        """Gradients summed and weights gathered once a step, beside the last micro-batch: exposed seconds and bytes of each."""
        return {
            name: (self.exposed(made.seconds, running), made.sent) for name, (made, running) in self.once_a_step.items()
        }

    @cached_property
    def once_a_step(self) -> dict[str, tuple[Sending, Number]]:
        """What data-parallel ranks send once a step, and the seconds of kernels that it can run beside."""
        plan, step = self.plan, self.step
        found: dict[str, tuple[Sending, Number]] = {}
        if self.gathers:
            if self.has_replicas:
                found["gradients of replicas"] = self._of_replicas()
            return found
        stage = self.fullest
        held = self._states.trained.value
        first = self.stages[stage.rank]
        kind: Collective = "reduce_scatter" if plan.zero_stage else "all_reduce"
        sums = self.network.collective(
            kind, held * step.recipe.main_gradient_bytes, self.shards, plan.tensor_parallel_size
        )
        found["gradients"] = sums, first.computing("backward")
        if plan.zero_stage:
            gather = self.network.collective(
                "all_gather", held * step.recipe.gathered_bytes, self.shards, plan.tensor_parallel_size
            )
            found["weights"] = gather, first.computing("forward")
        return found

    @property
    def has_replicas(self) -> bool:
        return bool(hasattr(self.plan.replicate_size, "ndim") or self.plan.replicate_size > 1)

    def _of_replicas(self) -> tuple[Sending, Number]:
        plan, step = self.plan, self.step
        held = self._states.trained_shard.value
        stride = plan.tensor_parallel_size * self.shards
        made = self.network.collective("all_reduce", held * step.recipe.reduce_bytes, plan.replicate_size, stride)
        return made, self.stages[self.fullest.rank].computing("backward")

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
    def optimizer(self) -> Number:
        """Reads and writes of the states that a rank holds."""
        return self.updated * self.updated_bytes * (1 - offloaded(self.plan, "optimizer")) / self.kernels.bandwidth

    @cached_property
    def updated_bytes(self) -> float:
        """Read and written for each parameter: its gradient, the weights that are updated and their copy for products, and the
        optimizer's states, both ways. AdamW with fp32 masters: 30."""
        recipe, square = self.step.updates, 4096
        held = optimizer(self.plan.optimizer).total_bytes(square, square, update_bytes=recipe.update_bytes) / square**2
        copied = recipe.compute_bytes if recipe.master_bytes else 0
        return float(recipe.main_gradient_bytes + 2 * recipe.update_bytes + 2 * held + copied)

    @property
    def moves_beside(self) -> bool:
        """Something goes to the host, or comes from there, while forward and backward run."""
        plan = self.plan
        return (plan.offload_activations, plan.offload_optimizer, plan.offload_parameters) != ("none", "none", "none")

    @cached_property
    def moving(self) -> tuple[Number, Number]:
        """Over the host link in a step: seconds that do not hide beside the passes that make and need what is moved, and bytes."""
        if not self.moves_beside:
            return 0, 0
        seconds, size = over_host(self._offloaded.beside, self.step.cluster)
        running = self.plan.num_microbatches * sum(self.stages[self.fullest.rank].computing(when) for when in WHEN)
        return self.exposed(seconds, running), size

    @cached_property
    def moving_once(self) -> tuple[Number, Number]:
        """Seconds and bytes of what an update on the host moves: nothing runs on the accelerator meanwhile."""
        return over_host(self._offloaded.once, self.step.cluster) if self.plan.offload_optimizer != "none" else (0, 0)

    @cached_property
    def _offloaded(self) -> OffloadTraffic:
        return offload_traffic(StageMemory(self.step, self.fullest))

    @cached_property
    def update_on_host(self) -> Term:
        """Seconds in which processors update."""
        assert self.step.cluster is not None
        return update_on_host(self.plan, self.step.cluster, self.updated, self.updated_bytes)

    @cached_property
    def framework(self) -> float:
        """What this runtime takes beyond the kernels that are counted, as a factor."""
        return self.rates.frameworks.get(self.plan.runtime, 1.0)

    def seconds(self) -> Number:
        """One step."""
        exposed = sum((seconds for seconds, _ in self.data_parallel.values()), 0)
        pipeline = self.plan.num_microbatches * (self.slowest + self.between[0]) + self.bubble
        made = self.factor * (pipeline + exposed + self.moving[0] + self.optimizer + self.rates.step)
        return made if self.plan.offload_optimizer == "none" else made + self.update_on_host.value + self.moving_once[0]

    @property
    def factor(self) -> Number:
        """By which all of a step takes longer than its kernels and links say."""
        return self.framework * self.stragglers.value

    @cached_property
    def stragglers(self) -> Term:
        """The factor by which slow nodes hold up the step; 1 where nobody said that there are any."""
        plan, cluster = self.plan, self.step.cluster
        assert cluster is not None
        return Term.of("stragglers", straggler_factor, kappa=plan.straggler_slowdown, q_slow=plan.straggler_share, nodes=cluster.num_nodes)  # fmt: skip
