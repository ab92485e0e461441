"""Memory of one training step: every pipeline stage, every moment at which memory can peak. Branches on names happen here."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block, Model
from tonnage.breakdown import Term
from tonnage.estimate import _layers as tapes
from tonnage.estimate._communication import Communication, copies, width_of
from tonnage.estimate._method import ADAPTER_BYTES, base_weights, frozen_below, trained_parameters
from tonnage.estimate._optimizer import foreach_copies, optimizer_states
from tonnage.estimate._overhead import training_overhead
from tonnage.estimate._rank import Shares, Stage, block_parameters, layer_count, op_parameters, rank_parameters, stages
from tonnage.estimate._sizes import Sizes
from tonnage.estimate._units import Buffers, Units
from tonnage.formula import Number
from tonnage.formulas import memory as f
from tonnage.ops import Embedding
from tonnage.precisions import TRAINING_RECIPES
from tonnage.runtimes import training_runtime
from tonnage.runtimes._base import Moment, State
from tonnage.spec import Cluster, TrainingPlan
from tonnage.tape import Account, Extent, Layer

NOTHING = Term.sum("nothing", unit="parameters")


class RankMemory(Struct, frozen=True, eq=False):
    """One group of equal ranks (a pipeline stage): each phase's Term, and the largest of them."""

    rank: int
    phases: tuple[Term, ...]

    @property
    def peak(self) -> Term:
        return max(self.phases, key=lambda phase: phase.value)


class TrainingMemory(Struct, frozen=True, eq=False):
    """All rank groups; `memory` is the peak phase of the fullest one."""

    ranks: tuple[RankMemory, ...]

    @property
    def fullest(self) -> RankMemory:
        return max(self.ranks, key=lambda rank: rank.peak.value)

    @property
    def memory(self) -> Term:
        return self.fullest.peak

    @property
    def needed(self) -> Number:
        """Bytes of the fullest rank's peak; an array if the plan's sizes are arrays."""
        return Term.max("needed", *(phase for rank in self.ranks for phase in rank.phases)).value


class Point(Struct, frozen=True, eq=False):
    """A moment of the step on one stage.

    `layers`: how many of each kind keep their tensors, of the micro-batch at work; `made`: how many of each kind have made their
    gradients; `live`: what the unit at work holds; `extra`: named bytes beside it. `buffers`: what FSDP2 holds; `is_later`: the
    backward of a first micro-batch is over.
    """

    phase: str
    moment: Moment
    operation: str
    layers: dict[Block, int]
    made: dict[Block, int]
    live: Account
    head_made: bool = True
    table_made: bool = False
    at_work: bool = True
    extra: tuple[Term, ...] = ()
    buffers: Buffers | None = None
    is_later: bool = False


def training_memory(model: Model, plan: TrainingPlan, cluster: Cluster | None = None) -> TrainingMemory:
    """Peak bytes of one training step, by pipeline stage and phase.

    The plan must have been checked (estimate.plans); its sizes may be arrays with one entry per plan.
    """
    return _Step(model, plan, cluster).walk()


class _Step:
    """The walk of one step: what all stages share is computed once."""

    def __init__(self, model: Model, plan: TrainingPlan, cluster: Cluster | None):
        self.model, self.plan, self.cluster = model, plan, cluster
        self.runtime = training_runtime(plan.runtime, plan.runtime_version)
        self.recipe = TRAINING_RECIPES[plan.precision]
        dense = plan.data_parallel_size * plan.context_parallel_size / plan.replicate_size
        experts = dense * plan.tensor_parallel_size / (plan.expert_parallel_size * plan.expert_tensor_parallel_size)
        self.whole = Shares(plan.tensor_parallel_size, plan.expert_parallel_size, plan.expert_tensor_parallel_size)
        self.sharded = Shares(self.whole.t, self.whole.e, self.whole.q, dense, experts)
        self.stages = stages(model, plan.pipeline_parallel_size, plan.first_stage_layers, plan.last_stage_layers, self.runtime.split)
        running = dict.fromkeys(block for stage in self.stages for block, _ in stage.layers)
        blocks = [*running, *(block for block, _ in self.stages[0].towers)]
        self.held = {block: block_parameters(block, self.whole) for block in blocks}
        self.shard = {block: block_parameters(block, self.sharded) for block in blocks}
        self.sizes = Sizes(plan, plan.sequence_parallel and self.runtime.sequence_parallel, self.whole)
        self.setting = tapes.setting_of(model, self.runtime, self.recipe, plan)
        self.layers = {block: self._layer(block) for block in running}
        self.trains_all = plan.method == "full"
        self.updates = (
            self.recipe if self.trains_all else TRAINING_RECIPES["fp32"] if plan.method != "freeze" else self.recipe
        )
        self.trained_held, self.trained_shard = self.held, self.shard
        if plan.method in ("lora", "dora"):
            self.trained_held = {
                block: trained_parameters(layer.trained, self.whole) for block, layer in self.layers.items()
            }
            self.trained_shard = {
                block: trained_parameters(layer.trained, self.sharded) for block, layer in self.layers.items()
            }
        self.kept = {block: self.sizes.kept("one layer", layer.kept) for block, layer in self.layers.items()}
        self.scalar = not any(hasattr(getattr(plan, name), "ndim") for name in plan.__struct_fields__)

    def _layer(self, block: Block) -> Layer:
        window = tapes.window_of(block)
        masked = window is not None and bool(_first(self.plan.sequence_length) > window)
        hidden = next(branch.hidden_size for branch in self.model.branches if block in branch.blocks)
        return tapes.block_layer(block, replace(self.setting, masked=masked), hidden)

    def walk(self) -> TrainingMemory:
        return TrainingMemory(tuple(RankMemory(stage.rank, _Rank(self, stage).phases()) for stage in self.stages))


class _Rank:
    """One pipeline stage of the step."""

    def __init__(self, step: _Step, stage: Stage):
        self.step, self.stage, self.plan, self.sizes, self.runtime = step, stage, step.plan, step.sizes, step.runtime
        self.whole = rank_parameters(stage, step.whole, step.held)
        self.shard = rank_parameters(stage, step.sharded, step.shard)
        self.communication = Communication(self.runtime, step.recipe, self.plan, stage, step.held, step.whole)
        self.order = self._running()
        self.counts = dict(Counter(self.order))
        self.trained, self.trained_shard = (
            self._trained(step.whole, step.trained_held),
            self._trained(step.sharded, step.trained_shard),
        )
        self.in_flight = self._in_flight()
        self.gradients_sharded = any(self.plan.zero_stage >= state.sharded_from for state in self.runtime.gradients)
        table = [op for op in stage.before if isinstance(op, Embedding)][:1]
        self.table = Term.sum(
            "table", *(term for op in table for term in op_parameters(op, step.whole)), unit="parameters"
        )
        self.is_tied = bool(stage.table)
        self.units = Units(self) if self.runtime.shards_units else None

    def _running(self) -> tuple[Block, ...]:
        """The layers that keep something for backward: all, but for those below the first that trains."""
        frozen = frozen_below(self.step.model, self.plan) - self.stage.first_layer
        return self.stage.order[max(frozen, 0) :]

    def _trained(self, shares: Shares, per_block: dict[Block, Term]) -> Term:
        """The parameters that this rank updates."""
        if self.step.trains_all:
            return self.whole if shares is self.step.whole else self.shard
        parts = [
            Term.product(block.name, "parameters", layer_count(count), per_block[block])
            for block, count in self.counts.items()
        ]
        return Term.sum("parameters that train", *parts, unit="parameters")

    def phases(self) -> tuple[Term, ...]:
        """Every phase; of each the moment that needs most. Plans in arrays may differ in which that is, so all are given then."""
        points = list(self._points())
        if self.step.scalar:
            best: dict[str, tuple[Number, Point]] = {}
            for point in points:
                size = self._size(point)
                if point.phase not in best or size > best[point.phase][0]:
                    best[point.phase] = size, point
            points = [point for _, point in best.values()]
        made = [self._phase(point) for point in points]
        return (*made, self._step())

    # ---- which moments there are ----

    def _unit_points(self, units: Units) -> Iterator[Point]:
        """Under FSDP2: beside the moments of the layers those at which their gradients are copied to be reduced."""
        nothing = dict.fromkeys(self.counts, 0)
        one_head = bool(units.head.children)
        last: list[Point] = []
        if self.stage.is_last and self.stage.after:
            buffers = units.loss()
            for one in self._loss().moments:
                last.append(Point("loss", "loss", one.name, self.counts, nothing, one.live, head_made=False, at_work=False, buffers=buffers))
        else:
            last.append(Point("forward", "loss", "the last layer", self.counts, nothing, {}, head_made=False, at_work=False, buffers=units.loss()))
        yield from last
        order = self.order
        for position in sorted(self._ends(order), reverse=True):
            block = order[position]
            below, above = dict(Counter(order[:position])), dict(Counter(order[position + 1 :]))
            moment: Moment = "first layer of backward" if position else "last layer of backward"
            name: str = "first layer of backward" if position == len(order) - 1 else "last layer of backward"
            if 0 < position < len(order) - 1:
                name = f"backward of the {'last' if order.index(block) != position else 'first'} {block.name}"
            buffers, reduction = units.at_layer(position), units.reduction(position)
            for later in (False, True) if units.accumulates else (False,):
                for each in self.step.layers[block].moments:
                    if not each.forward:
                        yield Point(name, moment, each.name, below, above, each.live, head_made=one_head, buffers=buffers, is_later=later)
                yield Point(name, moment, "the reduction of its gradients", below, above, {}, head_made=one_head, buffers=reduction, is_later=later)
        if self.stage.rank == 0 and self.table.children and self.step.trains_all:
            gradient = self.sizes.term("gradient of the embeddings", self.step.model.hidden_size, self.step.setting.types.parameter, tapes.TOKEN)
            yield Point("embedding", "last layer of backward", "embed_tokens", nothing, self.counts, {}, head_made=one_head,
                        extra=(gradient,), buffers=units.embedding(), is_later=units.accumulates)  # fmt: skip
            yield Point("embedding", "last layer of backward", "the last reduction", nothing, self.counts, {}, head_made=one_head,
                        buffers=units.end(), is_later=units.accumulates)  # fmt: skip

    def _points(self) -> Iterator[Point]:
        if self.units is not None:
            yield from self._unit_points(self.units)
            return
        nothing = dict.fromkeys(self.counts, 0)
        yield Point("forward", "loss", "the last layer", self.counts, nothing, {}, head_made=False, at_work=False)
        if self.stage.is_last and self.stage.after:
            loss = self._loss()
            for one in loss.moments:
                yield Point(
                    "loss", "loss", one.name, self.counts, nothing, one.live, head_made=False, at_work=False
                )
        order = self.order
        for position in sorted(self._ends(order), reverse=True):
            block = order[position]
            below, above = Counter(order[:position]), Counter(order[position + 1 :])
            name: str = "first layer of backward" if position == len(order) - 1 else "last layer of backward"
            moment: Moment = "first layer of backward" if position else "last layer of backward"
            if 0 < position < len(order) - 1:
                name = f"backward of the {'last' if order.index(block) != position else 'first'} {block.name}"
            for each in self.step.layers[block].moments:
                if each.forward:
                    yield Point("forward", "loss", each.name, dict(below), nothing, each.live, head_made=False)
                else:
                    yield Point(name, moment, each.name, dict(below), dict(above), each.live)
        if self.stage.rank == 0 and self.table.children and self.step.trains_all:
            yield Point("embedding", "last layer of backward", "embed_tokens", nothing, self.counts, {}, table_made=True, at_work=False)  # fmt: skip

    def _ends(self, order: tuple[Block, ...]) -> set[int]:
        """The first and the last layer of each kind: between them memory moves one way."""
        first: dict[Block, int] = {}
        last: dict[Block, int] = {}
        for position, block in enumerate(order):
            first.setdefault(block, position)
            last[block] = position
        return {*first.values(), *last.values()}

    def _loss(self) -> Layer:
        chunks = self.runtime.loss_chunks if self.plan.loss == "chunked" else 1
        kind = tapes.loss_of(self.runtime, self.plan, self.step.setting.own)
        return tapes.loss_layer(self.stage.after, self.step.setting, self.step.model.hidden_size, kind, chunks, self.runtime.logits_split)  # fmt: skip

    # ---- what a moment holds ----

    def _size(self, point: Point) -> Number:
        """Bytes of a moment as far as moments of one phase differ."""
        total = self.sizes.total(point.live)
        if self.units is not None and point.buffers is not None:
            extra = sum(term.value for term in point.extra)
            held = sum(term.value for term in (self._gradients(point), *self._held(point))) if self.units.accumulates else 0
            return total + point.buffers.bytes + self.sizes.made(point.live) * self.units.compute + extra + held
        if not self.gradients_sharded and not self._persists:
            total = total + self.sizes.made(point.live) * self._gradient_width
        return total

    @property
    def _persists(self) -> bool:
        return self.runtime.gradients_persist

    @property
    def _gradient_width(self) -> float:
        return sum(width_of(state.copy, self.step.updates) for state in self.runtime.gradients)

    def _phase(self, point: Point) -> Term:
        weights = self._weights()
        activations = Term.sum("activations", *self._activations(point), unit="bytes")
        temporary = Term.sum("temporary", *self._temporary(point), unit="bytes")
        if point.buffers is not None:
            buffers = Term.sum("communication buffers", *point.buffers.communication, unit="bytes")
        else:
            buffers = self.communication.buffers(point.moment, self.whole)
        gradients = self._gradients(point)
        parts = (weights, gradients, self._optimizer(), activations, temporary, buffers)
        return self._sum(point.phase, parts, self._reserve(point, gradients))

    def _reserve(self, point: Point | None, gradients: Term) -> list[Term] | None:
        """What the allocator keeps in the pools of FSDP2's streams, and around the logits; None: as a part of all tensors."""
        units = self.units
        if units is None:
            return None
        ahead = point.buffers.ahead if point is not None and point.buffers is not None else None
        shards = self._states("gradients", self.runtime.gradients)
        live = 0 if units.accumulates and point is not None else gradients.value
        made = [
            Term.of("reserve of the all-gather's stream", f.pool_reserve_bytes, M=units.pool().value, x=ahead.value if ahead else 0),
            Term.of("reserve of the reduce-scatter's stream", f.pool_reserve_bytes, M=shards.value, x=live),
        ]
        if point is not None and point.phase == "loss":
            made += self._holes()
        return made

    def _holes(self) -> list[Term]:
        """Where logits and their fp32 copy were is room for one fp32 gradient, and a half is left; segments of a layer's temporaries
        are too small for logits, unless the allocator expands them."""
        made = []
        kind = tapes.loss_of(self.runtime, self.plan, self.step.setting.own)
        if kind in ("upcast", "cross-entropy", "loss-parallel") and self.plan.loss != "chunked":
            split = "tensor" if self.step.setting.own is not None else "gathered"
            size = self.sizes.term("", self.step.model.vocab_size, 2, Extent("token", split))
            made.append(Term.of("reserve around the logits", f.fixed_bytes, M=size.value))
        if not self.plan.expandable_segments:
            block = self.order[-1]
            live = [self.sizes.total(each.live) for each in self.step.layers[block].moments]
            most = Term.max("most", *(Term.of("bytes", f.fixed_bytes, M=size) for size in live)).value
            made.append(Term.of("reserve of a layer's temporaries", f.pool_reserve_bytes, M=most, x=self.step.kept[block].value))
        return made

    def _step(self) -> Term:
        gradients = self._states("gradients", self.runtime.gradients)
        buffers = self.communication.buffers("optimizer step", self.whole)
        if self.units is not None and self.units.accumulates:  # nothing is resharded before the next step
            buffers = Term.sum("communication buffers", *self.units.end().gathered, unit="bytes")
        parts = (self._weights(), gradients, self._optimizer(), Term.sum("activations", unit="bytes"), self._step_copies(), buffers)  # fmt: skip
        return self._sum("optimizer step", parts, self._reserve(None, gradients))

    def _sum(self, name: str, parts: tuple[Term, ...], reserve: list[Term] | None = None) -> Term:
        tensors = sum(part.value for part in parts)
        return Term.sum(name, *parts, training_overhead(tensors, self.plan, self.step.cluster, reserve))

    def _activations(self, point: Point) -> list[Term]:
        waiting = [Term.product(f"{block.name}s", "bytes", layer_count(count), self.in_flight, self.step.kept[block])
                   for block, count in self.counts.items() if count]  # fmt: skip
        if not point.at_work and point.layers == self.counts:
            parts = [Term.sum("layers", *waiting, unit="bytes")]
        else:
            parts = [Term.sum("layers", *self._held(point), unit="bytes")]
        name = "logits and loss" if point.phase == "loss" else f"the layer at work, in {point.operation}"
        live = self.sizes.account(point.live, "activation")
        return [*parts, Term.sum(name, *live, unit="bytes")] if live else parts

    def _held(self, point: Point) -> list[Term]:
        """The layers below the one at work, and those of the micro-batches that wait for their backward."""
        parts = [Term.product(f"{block.name}s", "bytes", layer_count(count), self.step.kept[block])
                 for block, count in point.layers.items() if count]  # fmt: skip
        if self.plan.pipeline_parallel_size > 1:
            flight = self.in_flight
            if point.is_later:
                flight = Term.of("micro-batches in flight", f.microbatches_after_the_first, x=flight.value, m=self.plan.num_microbatches)
            others = Term.of("other micro-batches in flight", f.microbatches_waiting, x=flight.value)
            parts += [Term.product(f"{block.name}s of other micro-batches", "bytes", layer_count(count), others, self.step.kept[block])
                      for block, count in self.counts.items() if count]  # fmt: skip
        return parts

    def _temporary(self, point: Point) -> list[Term]:
        parts = self.sizes.account(point.live, "temporary")
        if self.units is not None and point.buffers is not None:
            made = self.units.made(self.sizes.made(point.live))
            return [*parts, made, *point.buffers.gradients, *self.units.edges(self.in_flight), *point.extra]
        width = self.step.setting.types.parameter
        if self.is_tied and self.step.trains_all and point.phase != "loss":
            parts.append(copies("gradient of the head, which waits for the embedding's", width, self.table))
        if point.table_made:
            parts.append(self.sizes.term("gradient of the embeddings", self.step.model.hidden_size, width, tapes.TOKEN))
            again = self.is_tied or self._persists or self.gradients_sharded
            if again and not self.gradients_sharded:
                parts.append(copies("gradient of the table before it is added", width, self.table))
        return [*parts, *point.extra]

    # ---- states ----

    def _states(self, name: str, states: tuple[State, ...]) -> Term:
        return Term.sum(name, *(self._state(state) for state in states), unit="bytes")

    def _state(self, state: State) -> Term:
        parameters = self.trained_shard if self.plan.zero_stage >= state.sharded_from else self.trained
        return copies(state.name, width_of(state.copy, self.step.updates), parameters)

    def _weights(self) -> Term:
        """The model's weights; beside a base that does not train, the adapters that do."""
        if self.step.trains_all:
            return self._states("weights", self.runtime.weights)
        is_sharded = any(self.plan.zero_stage >= state.sharded_from for state in self.runtime.weights)
        shares, whole = (self.step.sharded, self.shard) if is_sharded else (self.step.whole, self.whole)
        base = base_weights(self.stage, self.plan, shares, self.step.setting.types.parameter, whole)
        if self.plan.method == "freeze":
            return Term.sum("weights", *base)
        return Term.sum(
            "weights", *base, copies("adapters", ADAPTER_BYTES, self.trained_shard if is_sharded else self.trained)
        )

    def _optimizer(self) -> Term:
        recipe, plan = self.step.updates, self.plan
        masters = self.runtime.masters if recipe.master_bytes else ()
        is_sharded = plan.zero_stage >= self.runtime.optimizer_sharded_from
        parts = [self._state(state) for state in masters]
        parts += optimizer_states(
            plan.optimizer, recipe, self.step.model, self.trained_shard if is_sharded else self.trained
        )
        return Term.sum("optimizer", *parts, unit="bytes")

    def _step_copies(self) -> Term:
        """What the optimizer's step makes besides."""
        made = self.communication.step(self.trained_shard)
        if self.plan.optimizer_implementation != "foreach":
            return made
        is_sharded = self.plan.zero_stage >= self.runtime.optimizer_sharded_from
        more = foreach_copies(
            self.plan.optimizer, self.step.updates, self.trained_shard if is_sharded else self.trained
        )
        return Term.sum("temporary", *made.children, *more, unit="bytes")

    def _gradients(self, point: Point) -> Term:
        """All of them where they stay or are added to; else what backward has made so far."""
        everything = self._states("gradients", self.runtime.gradients)
        if self._persists:
            return everything
        if self.units is not None and self.units.accumulates:
            if point.is_later:
                return Term.sum("gradients", self.units.accumulated())
            above = [Term.product(block.name, "parameters", layer_count(count), self.step.trained_held[block]) for block, count in point.made.items() if count]  # fmt: skip
            return Term.sum("gradients", copies("gradients summed before they are reduced", self.units.reduce, Term.sum("parameters", *above, unit="parameters")))  # fmt: skip
        count = self.plan.num_microbatches
        carried = Term.of("gradients of earlier micro-batches", f.gradients_carried, m=count)
        whole = Term.product("gradients of earlier micro-batches", "bytes", carried, everything)
        fresh = Term.of("none of earlier micro-batches", f.gradients_fresh, m=count)
        made = Term.product("gradients made so far", "bytes", fresh, self._made(point))
        if self.step.scalar:
            return Term.sum("gradients", whole if count > 1 else made)
        return Term.sum("gradients", whole, made)

    def _made(self, point: Point) -> Term:
        step = self.step
        if point.table_made:
            return self._states("gradients", self.runtime.gradients)
        shares, per_block = (
            (step.sharded, step.trained_shard) if self.gradients_sharded else (step.whole, step.trained_held)
        )
        parts = [Term.product(block.name, "parameters", layer_count(count), per_block[block]) for block, count in point.made.items() if count]  # fmt: skip
        if point.head_made:
            parts += [term for op in self.stage.after for term in op_parameters(op, shares)] if step.trains_all else []
        if not self.gradients_sharded:
            here = self.sizes.made(point.live)
            parts.append(Term.of(f"of the unit at work, by {point.operation}", f.whole_parameters, N=here, z=1))
        made = Term.sum("parameters", *parts, unit="parameters")
        return Term.sum("gradients", *(copies(state.name, width_of(state.copy, step.updates), made) for state in self.runtime.gradients))  # fmt: skip

    def _in_flight(self) -> Term:
        p, v, m = self.plan.pipeline_parallel_size, self.plan.virtual_pipeline_size, self.plan.num_microbatches
        if v > 1:
            return Term.of(
                "micro-batches in flight", f.interleaved_microbatches_in_flight, p=p, i=self.stage.rank, m=m, v=v
            )
        return Term.of("micro-batches in flight", f.microbatches_in_flight, p=p, i=self.stage.rank, m=m)


def _first(value: Number) -> Number:
    """One entry of an array of plans that agree in what is asked."""
    return value.flat[0] if hasattr(value, "flat") else value
