"""One pipeline stage of a step: what each of its moments holds, as a number and as a tree.

The numbers are for searching: they add up the same Terms without making a tree for every moment.
"""

from collections.abc import Mapping
from functools import cached_property, reduce

from tonnage.architectures import Block
from tonnage.estimate.plan.schedule import in_flight
from tonnage.estimate.step.around import Around, around
from tonnage.estimate.step.communication import copies, width_of
from tonnage.estimate.step.offload import KeptTensors
from tonnage.estimate.step.optimizer import foreach_copies
from tonnage.estimate.step.overhead import training_overhead
from tonnage.estimate.step.points import Point, by_place, points
from tonnage.estimate.step.rank import Stage, layer_count
from tonnage.estimate.step.states import States
from tonnage.estimate.step.views import WalkedStep
from tonnage.estimate.step.waiting import waiting
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number, maximum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.tape import TOKEN


class StageMemory(States):
    """The memory of one stage."""

    def __init__(self, step: WalkedStep, stage: Stage):
        super().__init__(step, stage)
        self.tensors = KeptTensors(self)
        self.kept = self.tensors.stays  # of one layer of each kind, on the accelerator

    # ---- moments ----

    @cached_property
    def points(self) -> tuple[Point, ...]:
        step = self.step
        gradients_count = bool(self.step.framework.unit_gradient_width) or not (
            self.gradients_sharded or self.runtime.gradients_persist
        )
        has_table = self.stage.rank == 0 and step.trains_all and bool(self.table.children)
        table = tuple(step.framework.embedding().items()) if has_table else None
        plain = points(self.stage, step.kinds, step.framework.loss(self.stage), self.frozen, gradients_count, table)
        return step.framework.points(self, plain)

    @cached_property
    def in_flight(self) -> Term:
        return in_flight(self.plan, self.stage.rank)

    @cached_property
    def in_flight_later(self) -> Term:
        """When the backward of the first micro-batch is over."""
        return Term.of(
            "micro-batches in flight",
            f.microbatches_after_the_first,
            x=self.in_flight.value,
            m=self.plan.num_microbatches,
        )

    # ---- numbers ----

    def needed(self) -> Number:
        """Bytes of the fullest moment."""
        step = self.everything.value + self.step_copies.value + self.step_buffers.value
        step = step + sum(term.value for term in self._left_over)
        pools = self.step.framework.reserve(self, None, self.everything.value)
        if pools is not None:
            step = step + sum(term.value for term in pools)
        for alike in by_place(self.points):
            step = maximum(step, self._base(alike[0]) + self._most(alike))
        largest = step + self.weights.value + self.optimizer.value + self.lasting.value
        for each in self._around:
            largest = maximum(largest, each.tensors)
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
            width = width + self._fresh * self.gradient_width * (1 + self.step.framework.reserve_share(self, point))
        return total + self.sizes.made(point.bytes) * width if hasattr(width, "ndim") or width else total

    def _base(self, point: Point) -> Number:
        """What the moments of one place have in common."""
        found = self._bases.get(point.place)
        if found is None:
            gradients = self._gradients_total(point)
            beside = (
                *self._waiting(point),
                *self._outside_at(point),
                *self.tensors.passing(point),
                *waiting(self, point),
            )
            found = gradients + self.kept_total(point) + sum(term.value for term in beside)
            found = found + self.step.framework.beside(self, point, gradients)
            self._bases[point.place] = found
        return found

    @cached_property
    def _adds_made(self) -> bool:
        """Gradients of the unit at work are on the account of all gradients."""
        elsewhere = self.gradients_sharded or self.runtime.gradients_persist or self._gradients_leave
        return not elsewhere and self.step.framework.keeps_gradients

    @cached_property
    def _fresh(self) -> Number:
        return f.gradients_fresh.evaluate(self.plan.num_microbatches)

    def _outside_at(self, point: Point) -> list[Term]:
        """What the model's code keeps for all layers is gone when the embedding's gradient is made."""
        return [] if point.phase == "embedding" else self._outside

    @cached_property
    def _outside(self) -> list[Term]:
        return self.step.framework.outside(self)

    @cached_property
    def _left_over(self) -> list[Term]:
        return self.step.framework.left_over(self)

    def kept_total(self, point: Point) -> Number:
        """What layers keep at a moment, but for the one at work."""
        if point.everything:
            return self._all_kept
        if point.is_last:
            return self._below_kept(point)
        return (self._later_kept if point.is_later else self._others_kept) + self._below_kept(point)

    @cached_property
    def _all_kept(self) -> Number:
        alone = sum(count * self.kept[block].value for block, count in self.counts.items() if block not in self._spread)
        return alone + sum(
            count * self.in_flight.value * self.kept[block].value for block, count in self._spread.items()
        )

    @cached_property
    def _spread(self) -> dict[Block, int]:
        """The layers of every chunk of an interleaved schedule; others are in the last chunk, of which one
        micro-batch is in flight.
        """
        return {block: count for block, count in self.counts.items() if not self.step.framework.ends_pipeline(block)}

    @cached_property
    def _others_kept(self) -> Number:
        if self.plan.pipeline_parallel_size == 1:
            return 0
        waiting = f.microbatches_waiting.evaluate(self.in_flight.value)
        return sum(count * waiting * self.kept[block].value for block, count in self._spread.items())

    @cached_property
    def _later_kept(self) -> Number:
        waiting = f.microbatches_waiting.evaluate(self.in_flight_later.value)
        return sum(count * waiting * self.kept[block].value for block, count in self._spread.items())

    def _below_kept(self, point: Point) -> Number:
        return sum(count * self.kept[block].value for block, count in point.kept.items())

    def _gradients_total(self, point: Point) -> Number:
        """Gradients of a place: those of the unit at work come with its moments."""
        own = self.step.framework.gradients(self, point)
        if own is not None:
            return own.value
        everything = self.everything.value
        if self.runtime.gradients_persist or point.table_made or self._gradients_leave:
            return everything
        made = sum((count * self._per_block[block].value for block, count in point.made.items()), 0)
        made = made + (self.after.value if point.head_made else 0)
        return (1 - self._fresh) * everything + self._fresh * made * self.gradient_width

    @cached_property
    def _per_block(self) -> Mapping[Block, Term]:
        return self.step.trained_shard if self.gradients_sharded else self.step.trained_held

    # ---- trees ----

    def phases(self) -> tuple[Term, ...]:
        """Every phase; of each the moment that needs most. Plans in arrays may differ in which that is, so all are
        given then.
        """
        chosen = list(self.points)
        if self.step.scalar:
            best: dict[str, tuple[Number, Point]] = {}
            for point, size in zip(self.points, self._totals, strict=True):
                if point.phase not in best or size > best[point.phase][0]:
                    best[point.phase] = size, point
            chosen = [point for _, point in best.values()]
        made = (self._phase(point) for point in chosen)
        return (*made, self._optimizer_step(), *map(self._before_or_after, self._around))

    @cached_property
    def _around(self) -> tuple[Around, ...]:
        return tuple(around(self))

    def _before_or_after(self, made: Around) -> Term:
        activations = Term.sum("activations", unit="bytes")
        reserve = self.step.framework.reserve(self, None, made.gradients.value)
        return self._sum(made.name, made.gradients, activations, made.temporary, made.buffers, reserve, made.optimizer)

    def _phase(self, point: Point) -> Term:
        activations = Term.sum("activations", *self._activations(point), unit="bytes")
        temporary = Term.sum("temporary", *self._temporary(point), unit="bytes")
        passing = self.step.framework.passing(self, point)
        buffers = Term.sum("communication buffers", *self.buffers_at(point).children, *passing, unit="bytes")
        gradients = self._gradients(point)
        reserve = self.step.framework.reserve(self, point, gradients.value)
        return self._sum(point.phase, gradients, activations, temporary, buffers, reserve)

    def _optimizer_step(self) -> Term:
        activations = Term.sum("activations", *self._left_over[:1], unit="bytes")
        copied = Term.sum("temporary", *self.step_copies.children, *self._left_over[1:], unit="bytes")
        reserve = self.step.framework.reserve(self, None, self.everything.value)
        return self._sum("optimizer step", self.everything, activations, copied, self.step_buffers, reserve)

    @cached_property
    def step_buffers(self) -> Term:
        """Buffers of communication in the optimizer's step."""
        return self.step.framework.buffers(self, None) or self._buffers("optimizer step")

    def buffers_at(self, point: Point) -> Term:
        """Buffers of communication at a moment."""
        return self.step.framework.buffers(self, point) or self._buffers(point.moment)

    def _sum(
        self,
        name: str,
        gradients: Term,
        activations: Term,
        temporary: Term,
        buffers: Term,
        reserve: list[Term] | None,
        optimizer: Term | None = None,
    ) -> Term:
        temporary = Term.sum("temporary", *temporary.children, *self.lasting.children, unit="bytes")
        parts = (self.weights, gradients, optimizer or self.optimizer, activations, temporary, buffers)
        tensors = sum(part.value for part in parts)
        return Term.sum(
            name, *parts, training_overhead(tensors, self.plan, self.step.cluster, self._workspaces, reserve)
        )

    @cached_property
    def lasting(self) -> Term:
        return Term.sum("buffers of the whole step", *self.step.framework.lasting(self), *self._moved, unit="bytes")

    @cached_property
    def _moved(self) -> list[Term]:
        """FSDP2 copies the shards of a unit to the accelerator before they are gathered; DeepSpeed does so parameter
        by parameter.
        """
        if (
            self.plan.offload_parameters == "none"
            or not self.step.framework.copies_layer_shards
            or not self.stage.layers
        ):
            return []
        shards = [self.step.shard[block] for block, _ in self.stage.layers]
        width = sum(width_of(state.copy, self.step.updates) for state in self.runtime.weights)
        return [copies("shard of a layer, copied from the host", width, Term.max("largest layer", *shards))]

    @cached_property
    def _workspaces(self) -> list[Term]:
        return [*self.step.framework.workspaces(self), *(self._states_of_optimizer if self._is_paged else [])]

    def _activations(self, point: Point) -> list[Term]:
        parts = [self._layers if point.everything else Term.sum("layers", *self._held(point), unit="bytes")]
        parts += [*self.tensors.passing(point), *waiting(self, point)]
        live = self.sizes.account(point.live, "activation")
        name = (
            "logits and loss"
            if point.phase == "loss"
            else Message("the layer at work, in {operation}", operation=point.operation)
        )
        parts += self._outside_at(point)
        return [*parts, Term.sum(name, *live, unit="bytes")] if live else parts

    @cached_property
    def _layers(self) -> Term:
        parts = [
            Term.product(
                f"{block.name}s",
                "bytes",
                layer_count(count),
                *((self.in_flight,) if block in self._spread else ()),
                self.kept[block],
            )
            for block, count in self.counts.items()
        ]
        return Term.sum("layers", *parts, unit="bytes")

    def _held(self, point: Point) -> list[Term]:
        """The layers below the one at work, and those of the micro-batches that wait for their backward."""
        parts = [
            Term.product(f"{block.name}s", "bytes", layer_count(count), self.kept[block])
            for block, count in point.kept.items()
        ]
        if self.plan.pipeline_parallel_size > 1:
            flight = self.in_flight_later.value if point.is_later else self.in_flight.value
            others = Term.of("other micro-batches in flight", f.microbatches_waiting, x=1 if point.is_last else flight)
            parts += [
                Term.product(
                    Message("{block}s of other micro-batches", block=block.name),
                    "bytes",
                    layer_count(count),
                    others,
                    self.kept[block],
                )
                for block, count in self._spread.items()
            ]
        return parts

    def _temporary(self, point: Point) -> list[Term]:
        return [
            *self.sizes.account(point.live, "temporary"),
            *self._waiting(point),
            *self.step.framework.temporary(self, point),
        ]

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

    @cached_property
    def weights(self) -> Term:
        """Weights on the accelerator."""
        stays, more = self.stays("weights", self.every_weight), self.step.framework.weights(self)
        return Term.sum("weights", *stays.children, *more, unit="bytes") if more else stays

    @cached_property
    def step_copies(self) -> Term:
        """What the optimizer's step makes besides."""
        made = self.step.framework.step_copies(self) or self.communication.step(self.trained_shard)
        if self.plan.optimizer_implementation != "foreach":
            return made
        more = Term.sum("foreach", *foreach_copies(self.plan.optimizer, self.step.updates, self.updated), unit="bytes")
        return Term.sum("temporary", *made.children, *self.stays("optimizer", more).children, unit="bytes")

    def _gradients(self, point: Point) -> Term:
        """All of them where they stay or are added to; else what backward has made so far."""
        own = self.step.framework.gradients(self, point)
        if own is not None:
            return own
        if self.runtime.gradients_persist or point.table_made or self._gradients_leave:
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
        parts = [
            Term.product(block.name, "parameters", layer_count(count), self._per_block[block])
            for block, count in point.made.items()
        ]
        parts += [self.after] if point.head_made else []
        if not self.gradients_sharded:
            here = self.sizes.made(point.bytes)
            parts.append(
                Term.of(
                    Message("of the unit at work, by {operation}", operation=point.operation),
                    f.whole_parameters,
                    N=here,
                    z=1,
                )
            )
        made = Term.sum("parameters", *parts, unit="parameters")
        return Term.sum(
            "gradients",
            *(copies(state.name, width_of(state.copy, self.step.updates), made) for state in self.runtime.gradients),
        )
