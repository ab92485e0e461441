"""One pipeline stage of a step: what each of its moments holds, as a number and as a tree.

The numbers are for searching: they add up the same Terms without making a tree for every moment.
"""

from collections import Counter
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from tonnage.architectures import Block
from tonnage.breakdown import Term
from tonnage.estimate._communication import Communication, copies, width_of
from tonnage.estimate._method import base_weights, frozen_below
from tonnage.estimate._optimizer import foreach_copies, optimizer_states
from tonnage.estimate._overhead import training_overhead
from tonnage.estimate._points import Point, by_place, points, running
from tonnage.estimate._rank import Shares, Stage, layer_count, op_parameters, rank_parameters
from tonnage.formula import Number, maximum
from tonnage.formulas import memory as f
from tonnage.ops import Embedding
from tonnage.optimizers import optimizer
from tonnage.runtimes._base import Moment, State
from tonnage.tape import TOKEN

if TYPE_CHECKING:
    from tonnage.estimate.training import Step

NOTHING = Term.sum("nothing", unit="bytes")


class StageMemory:
    """The memory of one stage. Everything is made when it is asked for, and once."""

    def __init__(self, step: "Step", stage: Stage):
        self.step, self.stage, self.plan, self.sizes, self.runtime = step, stage, step.plan, step.sizes, step.runtime
        self.frozen = frozen_below(step.model, step.plan)
        self.counts = dict(Counter(running(stage, self.frozen)))
        self.is_tied = bool(stage.table) and step.trains_all and step.framework.adds_tied_gradients
        zero = self.plan.zero_stage
        self.gradients_sharded = any(zero >= state.sharded_from for state in self.runtime.gradients)
        self.gradient_width = sum(width_of(state.copy, step.updates) for state in self.runtime.gradients)
        self.communication = Communication(self.runtime, step.recipe, self.plan, stage, step.held, step.whole)
        self._made_buffers: dict[Moment, Term] = {}
        self._bases: dict[int, Number] = {}
        self._sizes_here: dict[tuple[int, bool], Number] = {}
        self._mosts: dict[tuple[int, ...], Number] = {}

    # ---- parameters ----

    @cached_property
    def whole(self) -> Term:
        """All parameters of the rank, before ZeRO."""
        return rank_parameters(self.stage, self.step.whole, self.step.held)

    @cached_property
    def shard(self) -> Term:
        """Its share of them."""
        return rank_parameters(self.stage, self.step.sharded, self.step.shard)

    @cached_property
    def trained(self) -> Term:
        """The parameters that train, before ZeRO."""
        return self.whole if self.step.trains_all else self._trained(self.step.trained_held)

    @cached_property
    def trained_shard(self) -> Term:
        """The rank's share of the parameters that train."""
        return self.shard if self.step.trains_all else self._trained(self.step.trained_shard)

    def _trained(self, per_block: dict[Block, Term]) -> Term:
        parts = [Term.product(block.name, "parameters", layer_count(count), per_block[block])
                 for block, count in self.counts.items()]  # fmt: skip
        return Term.sum("parameters that train", *parts, unit="parameters")

    @cached_property
    def table(self) -> Term:
        """The embedding's parameters on this rank."""
        found = [op for op in self.stage.before if isinstance(op, Embedding)][:1]
        parts = [term for op in found for term in op_parameters(op, self.step.whole)]
        return Term.sum("table", *parts, unit="parameters")

    @cached_property
    def after(self) -> Term:
        """What comes after the layers: norm and head, as far as their gradients stay."""
        shares = self.step.sharded if self.gradients_sharded else self.step.whole
        ops = self.stage.after if self.step.trains_all else ()
        parts = [term for op in ops for term in op_parameters(op, shares)]
        return Term.sum("after the layers", *parts, unit="parameters")

    @cached_property
    def head(self) -> Term:
        """The head's parameters, before ZeRO; a tied one is the table."""
        parts = [term for op in (*self.stage.after, *self.stage.table) for term in op_parameters(op, self.step.whole)]
        return Term.sum("norm and head", *parts, unit="parameters")

    # ---- moments ----

    @cached_property
    def points(self) -> tuple[Point, ...]:
        step = self.step
        gradients_count = bool(self.step.framework.unit_gradient_width) or not (self.gradients_sharded or self.runtime.gradients_persist)  # fmt: skip
        has_table = self.stage.rank == 0 and step.trains_all and bool(self.table.children)
        table = tuple(step.framework.embedding().items()) if has_table else None
        plain = points(self.stage, step.kinds, step.framework.loss(self.stage), self.frozen, gradients_count, table)
        return step.framework.points(self, plain)

    @cached_property
    def in_flight(self) -> Term:
        p, v, m = self.plan.pipeline_parallel_size, self.plan.virtual_pipeline_size, self.plan.num_microbatches
        if v > 1:
            return Term.of("micro-batches in flight", f.interleaved_microbatches_in_flight, p=p, i=self.stage.rank, m=m, v=v)  # fmt: skip
        return Term.of("micro-batches in flight", f.microbatches_in_flight, p=p, i=self.stage.rank, m=m)

    @cached_property
    def in_flight_later(self) -> Term:
        """When the backward of the first micro-batch is over."""
        return Term.of("micro-batches in flight", f.microbatches_after_the_first, x=self.in_flight.value, m=self.plan.num_microbatches)  # fmt: skip

    # ---- numbers ----

    def needed(self) -> Number:
        """Bytes of the fullest moment."""
        step = self.everything.value + self.step_copies.value + self.step_buffers.value
        pools = self.step.framework.reserve(self, None, self.everything.value)
        if pools is not None:
            step = step + sum(term.value for term in pools)
        for alike in by_place(self.points):
            step = maximum(step, self._base(alike[0]) + self._most(alike))
        largest = step + self.weights.value + self.optimizer.value + self._lasting.value
        reserve: list[Term] | None = [] if pools is not None else None  # else each moment has its own
        return largest + training_overhead(largest, self.plan, self.step.cluster, self._workspaces, reserve).value

    @cached_property
    def _totals(self) -> list[Number]:
        return [self._total(point) for point in self.points]

    def _total(self, point: Point) -> Number:
        """Tensors of a moment, but for weights and optimizer."""
        return self._base(point) + self._here(point)

    def _most(self, alike: tuple[Point, ...]) -> Number:
        """The most that operations hold among the moments of one place."""
        key = tuple(id(point.live) for point in alike)
        found = self._mosts.get(key)
        if found is None:
            found = self._mosts[key] = reduce(maximum, map(self._here, alike))
        return found

    def _here(self, point: Point) -> Number:
        if not point.live:
            return 0
        key = id(point.live), point.table_made
        found = self._sizes_here.get(key)
        if found is None:
            found = self._sizes_here[key] = self._at_work(point)
        return found

    def _at_work(self, point: Point) -> Number:
        """What operations hold at a moment; layers of one kind hold the same wherever they stand."""
        total = self.sizes.total(point.bytes)
        width = self.step.framework.unit_gradient_width
        if self._adds_made and not point.table_made:
            width = width + self._fresh * self.gradient_width
        return total + self.sizes.made(point.bytes) * width if hasattr(width, "ndim") or width else total

    def _base(self, point: Point) -> Number:
        """What the moments of one place have in common."""
        found = self._bases.get(point.place)
        if found is None:
            gradients = self._gradients_total(point)
            found = gradients + self.kept_total(point) + sum(term.value for term in self._waiting(point))
            found = found + self.step.framework.beside(self, point, gradients)
            self._bases[point.place] = found
        return found

    @cached_property
    def _adds_made(self) -> bool:
        """Gradients of the unit at work are on the account of all gradients."""
        return not (self.gradients_sharded or self.runtime.gradients_persist) and self.step.framework.keeps_gradients

    @cached_property
    def _fresh(self) -> Number:
        return f.gradients_fresh.evaluate(self.plan.num_microbatches)

    def kept_total(self, point: Point) -> Number:
        """What layers keep at a moment, but for the one at work."""
        if point.everything:
            return self._all_kept
        if point.is_last:
            return self._below_kept(point)
        return (self._later_kept if point.is_later else self._others_kept) + self._below_kept(point)

    @cached_property
    def _all_kept(self) -> Number:
        return sum(count * self.in_flight.value * self.step.kept[block].value for block, count in self.counts.items())

    @cached_property
    def _others_kept(self) -> Number:
        if self.plan.pipeline_parallel_size == 1:
            return 0
        waiting = f.microbatches_waiting.evaluate(self.in_flight.value)
        return sum(count * waiting * self.step.kept[block].value for block, count in self.counts.items())

    @cached_property
    def _later_kept(self) -> Number:
        waiting = f.microbatches_waiting.evaluate(self.in_flight_later.value)
        return sum(count * waiting * self.step.kept[block].value for block, count in self.counts.items())

    def _below_kept(self, point: Point) -> Number:
        return sum(count * self.step.kept[block].value for block, count in point.kept.items())

    def _gradients_total(self, point: Point) -> Number:
        """Gradients of a place: those of the unit at work come with its moments."""
        own = self.step.framework.gradients(self, point)
        if own is not None:
            return own.value
        everything = self.everything.value
        if self.runtime.gradients_persist or point.table_made:
            return everything
        made = sum((count * self._per_block[block].value for block, count in point.made.items()), 0)
        made = made + (self.after.value if point.head_made else 0)
        return (1 - self._fresh) * everything + self._fresh * made * self.gradient_width

    @cached_property
    def _per_block(self) -> dict[Block, Term]:
        return self.step.trained_shard if self.gradients_sharded else self.step.trained_held

    # ---- trees ----

    def phases(self) -> tuple[Term, ...]:
        """Every phase; of each the moment that needs most. Plans in arrays may differ in which that is, so all are given then."""
        chosen = list(self.points)
        if self.step.scalar:
            best: dict[str, tuple[Number, Point]] = {}
            for point, size in zip(self.points, self._totals, strict=True):
                if point.phase not in best or size > best[point.phase][0]:
                    best[point.phase] = size, point
            chosen = [point for _, point in best.values()]
        return (*(self._phase(point) for point in chosen), self._optimizer_step())

    def _phase(self, point: Point) -> Term:
        activations = Term.sum("activations", *self._activations(point), unit="bytes")
        temporary = Term.sum("temporary", *self._temporary(point), unit="bytes")
        passing = self.step.framework.passing(self, point)
        buffers = Term.sum("communication buffers", *self.buffers_at(point).children, *passing, unit="bytes")
        gradients = self._gradients(point)
        reserve = self.step.framework.reserve(self, point, gradients.value)
        return self._sum(point.phase, gradients, activations, temporary, buffers, reserve)

    def _optimizer_step(self) -> Term:
        activations = Term.sum("activations", unit="bytes")
        reserve = self.step.framework.reserve(self, None, self.everything.value)
        return self._sum("optimizer step", self.everything, activations, self.step_copies, self.step_buffers, reserve)  # fmt: skip

    @cached_property
    def step_buffers(self) -> Term:
        """Buffers of communication in the optimizer's step."""
        return self.step.framework.buffers(self, None) or self._buffers("optimizer step")

    def buffers_at(self, point: Point) -> Term:
        """Buffers of communication at a moment."""
        return self.step.framework.buffers(self, point) or self._buffers(point.moment)

    def _sum(self, name: str, gradients: Term, activations: Term, temporary: Term, buffers: Term, reserve: list[Term] | None) -> Term:  # fmt: skip
        temporary = Term.sum("temporary", *temporary.children, *self._lasting.children, unit="bytes")
        parts = (self.weights, gradients, self.optimizer, activations, temporary, buffers)
        tensors = sum(part.value for part in parts)
        return Term.sum(
            name, *parts, training_overhead(tensors, self.plan, self.step.cluster, self._workspaces, reserve)
        )

    @cached_property
    def _lasting(self) -> Term:
        return Term.sum("buffers of the whole step", *self.step.framework.lasting(self), unit="bytes")

    @cached_property
    def _workspaces(self) -> list[Term]:
        return [*self.step.framework.workspaces(self), *(self._states_of_optimizer if self._is_paged else [])]

    @property
    def _is_paged(self) -> bool:
        return optimizer(self.plan.optimizer).paged

    def _activations(self, point: Point) -> list[Term]:
        parts = [self._layers if point.everything else Term.sum("layers", *self._held(point), unit="bytes")]
        live = self.sizes.account(point.live, "activation")
        name = "logits and loss" if point.phase == "loss" else f"the layer at work, in {point.operation}"
        return [*parts, Term.sum(name, *live, unit="bytes")] if live else parts

    @cached_property
    def _layers(self) -> Term:
        parts = [Term.product(f"{block.name}s", "bytes", layer_count(count), self.in_flight, self.step.kept[block])
                 for block, count in self.counts.items()]  # fmt: skip
        return Term.sum("layers", *parts, unit="bytes")

    def _held(self, point: Point) -> list[Term]:
        """The layers below the one at work, and those of the micro-batches that wait for their backward."""
        parts = [Term.product(f"{block.name}s", "bytes", layer_count(count), self.step.kept[block])
                 for block, count in point.kept.items()]  # fmt: skip
        if self.plan.pipeline_parallel_size > 1:
            flight = self.in_flight_later.value if point.is_later else self.in_flight.value
            others = Term.of("other micro-batches in flight", f.microbatches_waiting, x=1 if point.is_last else flight)
            parts += [Term.product(f"{block.name}s of other micro-batches", "bytes", layer_count(count), others, self.step.kept[block])
                      for block, count in self.counts.items()]  # fmt: skip
        return parts

    def _temporary(self, point: Point) -> list[Term]:
        return [*self.sizes.account(point.live, "temporary"), *self._waiting(point), *self.step.framework.temporary(self, point)]  # fmt: skip

    def _waiting(self, point: Point) -> list[Term]:
        """Gradients of tables: of a tied head until the embedding's comes, and of the embedding itself."""
        if point.head_made and self.is_tied and not point.table_made:
            return [self._tied]
        return self._of_table if point.table_made and not point.live else []

    @cached_property
    def _tied(self) -> Term:
        return copies(
            "gradient of the head, which waits for the embedding's", self.step.setting.types.parameter, self.table
        )

    @cached_property
    def _of_table(self) -> list[Term]:
        width = self.step.setting.types.parameter
        made = [self.sizes.term("gradient of the embeddings", self.step.model.hidden_size, width, TOKEN)]
        again = self.is_tied or self.runtime.gradients_persist
        if again and not self.gradients_sharded:
            made.append(copies("gradient of the table before it is added", width, self.table))
        return [*made, self._tied] if self.is_tied else made

    # ---- states ----

    def _buffers(self, moment: Moment) -> Term:
        if moment not in self._made_buffers:
            self._made_buffers[moment] = self.communication.buffers(moment, self.whole)
        return self._made_buffers[moment]

    def _states(self, name: str, states: tuple[State, ...]) -> Term:
        return Term.sum(name, *(self._state(state) for state in states), unit="bytes")

    def _state(self, state: State) -> Term:
        parameters = self.trained_shard if self.plan.zero_stage >= state.sharded_from else self.trained
        return copies(state.name, width_of(state.copy, self.step.updates), parameters)

    @cached_property
    def everything(self) -> Term:
        """All gradients, when the optimizer takes its step."""
        if not self.step.framework.keeps_gradients:
            return Term.sum("gradients", unit="bytes")
        return self._states("gradients", self.runtime.gradients)

    @cached_property
    def weights(self) -> Term:
        """The model's weights; beside a base that does not train, the adapters that do."""
        if self.step.trains_all:
            return self._states("weights", self.runtime.weights)
        is_sharded = any(self.plan.zero_stage >= state.sharded_from for state in self.runtime.weights)
        shares: Shares = self.step.sharded if is_sharded else self.step.whole
        base = base_weights(self.stage, self.plan, shares, self.step.setting.types.parameter, self.shard if is_sharded else self.whole, head=self.runtime.quantises_head)  # fmt: skip
        if self.plan.method == "freeze":
            return Term.sum("weights", *base)
        return Term.sum("weights", *base, copies("adapters", self.step.updates.update_bytes, self.trained_shard if is_sharded else self.trained))  # fmt: skip

    @cached_property
    def updated(self) -> Term:
        """The parameters whose optimizer states this rank holds."""
        return self.trained_shard if self.plan.zero_stage >= self.runtime.optimizer_sharded_from else self.trained

    @cached_property
    def optimizer(self) -> Term:
        """Master weights and the optimizer's own states."""
        recipe = self.step.updates
        masters = self.runtime.masters if recipe.master_bytes else ()
        parts = [self._state(state) for state in masters]
        parts += [] if self._is_paged else self._states_of_optimizer
        return Term.sum("optimizer", *parts, unit="bytes")

    @property
    def _states_of_optimizer(self) -> list[Term]:
        """What the optimizer keeps; in managed memory, which is none of PyTorch's, where it is paged."""
        made = optimizer_states(self.plan.optimizer, self.step.updates, self.step.model, self.updated)
        return [term.named(f"{term.name}, in managed memory") for term in made] if self._is_paged else made

    @cached_property
    def step_copies(self) -> Term:
        """What the optimizer's step makes besides."""
        made = self.communication.step(self.trained_shard)
        if self.plan.optimizer_implementation != "foreach":
            return made
        more = foreach_copies(self.plan.optimizer, self.step.updates, self.updated)
        return Term.sum("temporary", *made.children, *more, unit="bytes")

    def _gradients(self, point: Point) -> Term:
        """All of them where they stay or are added to; else what backward has made so far."""
        own = self.step.framework.gradients(self, point)
        if own is not None:
            return own
        if self.runtime.gradients_persist or point.table_made:
            return self.everything
        count = self.plan.num_microbatches
        carried = Term.of("gradients of earlier micro-batches", f.gradients_carried, m=count)
        whole = Term.product("gradients of earlier micro-batches", "bytes", carried, self.everything)
        fresh = Term.of("none of earlier micro-batches", f.gradients_fresh, m=count)
        made = Term.product("gradients made so far", "bytes", fresh, self._made(point))
        if self.step.scalar:
            return Term.sum("gradients", whole if count > 1 else made)
        return Term.sum("gradients", whole, made)

    def _made(self, point: Point) -> Term:
        parts = [Term.product(block.name, "parameters", layer_count(count), self._per_block[block])
                 for block, count in point.made.items()]  # fmt: skip
        parts += [self.after] if point.head_made else []
        if not self.gradients_sharded:
            here = self.sizes.made(point.bytes)
            parts.append(Term.of(f"of the unit at work, by {point.operation}", f.whole_parameters, N=here, z=1))
        made = Term.sum("parameters", *parts, unit="parameters")
        return Term.sum("gradients", *(copies(state.name, width_of(state.copy, self.step.updates), made) for state in self.runtime.gradients))  # fmt: skip
