"""One pipeline stage of a step: what each of its moments holds, as a tree and, for searching, as a number.

Both come from the same Terms. The number makes them once for each place of the step, where they are the same, and adds
the most that operations hold at its moments.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property, reduce
from typing import NamedTuple

from msgspec.structs import replace

from tonnage.architectures import Block
from tonnage.estimate.plan.schedule import in_flight
from tonnage.estimate.step.communication import copies, training_overhead, width_of
from tonnage.estimate.step.points import Point, by_place, points
from tonnage.estimate.step.rank import Stage, largest_weight, largest_weights, layer_count
from tonnage.estimate.step.split_backward import waiting
from tonnage.estimate.step.states import KeptTensors, States, foreach_copies
from tonnage.estimate.step.views import StageView, WalkedStep
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number, is_any, maximum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.tape import TOKEN

ROUNDING = 1e-12  # part of a sum: the same bytes as a bound, as a number and as a tree are added in another order

# ---- Before the first step and after the last: what loading and saving hold on the accelerator.


class Phase(NamedTuple):
    """What a phase of the step, or one outside of the steps, holds beside what stays for the whole step. `reserve`: of
    the allocator, where it is known; `optimizer`: states, where they are others than in a step.
    """

    name: str
    gradients: Term
    activations: list[Term]
    temporary: list[Term]
    buffers: Term
    reserve: list[Term] | None
    optimizer: Term | None = None

    @property
    def bytes(self) -> Number:
        """Bytes of the moment, without optimizer states."""
        parts = (*self.activations, *self.temporary, self.buffers, *(self.reserve or ()))
        return sum((term.value for term in parts), self.gradients.value)


def around(rank: StageView) -> Iterator[Phase]:
    """Loading a base that is quantised on the way, and saving weights that are gathered first.

    transformers loads parameter by parameter (core_model_loading.py), and bitsandbytes quantises each on the
    accelerator. DeepSpeed gathers the parameters of one module at a time (_zero3_consolidated_16bit_state_dict).
    """
    nothing = {name: Term.sum(name, unit="bytes") for name in ("gradients", "optimizer", "communication buffers")}
    if rank.plan.tuning.base_weights:
        width = rank.step.setting.types.parameter
        one = copies("a weight before it is quantised", width, largest_weight(rank.stage, rank.step.whole, ("layers",)))
        yield _phase(rank, "load", nothing["gradients"], nothing["optimizer"], nothing["communication buffers"], one)
    if rank.plan.deepspeed.stage3_gather_16bit_weights_on_model_save and rank.plan.zero_stage == 3:
        one = copies(
            "module that is gathered to be saved",
            rank.step.recipe.compute_bytes,
            largest_weights(rank.stage, rank.step.whole),
        )
        buffers = rank.step.framework.buffers(rank, None) or nothing["communication buffers"]
        yield _phase(rank, "save", rank.everything, rank.optimizer, buffers, one)


def _of_tower(rank: "StageMemory") -> Phase:
    """The vision tower at work: in its backward, when all gradients are made, or in its forward, where it is frozen."""
    from tonnage.estimate.step.images import images_at_work  # most runs are on text

    point = rank.points[-1] if rank.plan.trains_tower else rank.points[0]
    gradients, held = rank.gradients_at(point), [*rank.images, images_at_work(rank)]
    reserve = rank.step.framework.reserve(rank, point, gradients.value)
    return Phase("vision tower", gradients, held, [], rank.buffers_at(point), reserve, rank.optimizer)


def _phase(rank: StageView, name: str, gradients: Term, optimizer: Term, buffers: Term, one: Term) -> Phase:
    reserve = rank.step.framework.reserve(rank, None, gradients.value)
    return Phase(name, gradients, [], [one], buffers, reserve, optimizer)


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
        """Bytes of the fullest moment: the most that operations hold at each place of the step, and all that is there
        with them.
        """
        *_, needed = self.bounds()
        return needed

    def bounds(self) -> Iterator[Number]:
        """Bytes that the fullest moment needs at least, place by place; the last are its bytes. Whoever asks only
        whether it fits may stop at the first that does not.
        """
        lasting = self.weights.value + self.optimizer.value + self.lasting.value
        step = self._optimizer_step.bytes
        yield step + lasting
        for same_place in by_place(self.points):
            step = maximum(step, self._rest(same_place[0]) + self._most(same_place))
            yield step + lasting
        largest = step + self.weights.value + self.optimizer.value + self.lasting.value
        for phase in self._around:
            own = phase.optimizer.value if phase.optimizer is not None else 0
            largest = maximum(largest, phase.bytes + self.weights.value + own + self.lasting.value)
        # None: a part of all tensors
        reserve: list[Term] | None = [] if self._optimizer_step.reserve is not None else None
        yield largest + training_overhead(largest, self.plan, self.step.cluster, self._workspaces, reserve).value

    def _rest(self, point: Point) -> Number:
        """Bytes of a place but for weights, optimizer states and what operations hold."""
        rest = self._bases.get(point.place)
        if rest is None:
            rest = self._bases[point.place] = self._held_at(replace(point, bytes={})).bytes
        return rest

    def _most(self, same_place: tuple[Point, ...]) -> Number:
        """The most that operations hold among the moments of one place."""
        key = tuple(id(point.live) for point in same_place)
        most = self._mosts.get(key)
        if most is None:
            most = self._mosts[key] = reduce(maximum, map(self._here, same_place))
        return most

    def _here(self, point: Point) -> Number:
        if not point.live:
            return 0
        key = id(point.live), point.table_made
        size = self._sizes_here.get(key)
        if size is None:
            size = self._sizes_here[key] = self._at_work(point)
        return size

    def _at_work(self, point: Point) -> Number:
        """What operations hold at a moment; layers of one kind hold the same wherever they stand."""
        total = self.sizes.total(point.bytes)
        width = self.step.framework.unit_gradient_width
        if self._adds_made and not point.table_made:
            width = width + self._fresh * self.gradient_width * (1 + self.step.framework.reserve_share(self, point))
        return total + self.sizes.made(point.bytes) * width if hasattr(width, "ndim") or width else total

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

    @cached_property
    def _spread(self) -> dict[Block, int]:
        """The layers of every chunk of an interleaved schedule; others are in the last chunk, of which one
        micro-batch is in flight.
        """
        return {block: count for block, count in self.counts.items() if not self.step.framework.ends_pipeline(block)}

    @cached_property
    def _per_block(self) -> Mapping[Block, Term]:
        return self.step.trained_shard if self.gradients_sharded else self.step.trained_held

    # ---- trees ----

    def phases(self) -> tuple[Term, ...]:
        """Every phase; of each the moment that needs most. Plans in arrays may differ in which that is, so all are
        given then.
        """
        points = [point for _, point in self._fullest_points()] if self.step.scalar else self.points
        return tuple(map(self._term, (*map(self._phase, points), self._optimizer_step, *self._around)))

    def peak(self) -> Term:
        """The phase that needs most bytes, the first of equal ones, as `phases` has it; for plans of numbers. Trees of
        phases that need less are not built.
        """
        sized: list[tuple[Number, Point | Phase]] = [
            (size + self.optimizer.value, point) for size, point in self._fullest_points()
        ]
        for phase in (self._optimizer_step, *self._around):
            sized.append((phase.bytes + (phase.optimizer or self.optimizer).value, phase))
        nearly = max(size for size, _ in sized) * (1 - ROUNDING)
        fullest = (moment for size, moment in sized if size >= nearly)
        phases = (self._term(moment if isinstance(moment, Phase) else self._phase(moment)) for moment in fullest)
        return max(phases, key=lambda phase: phase.value)

    def _fullest_points(self) -> list[tuple[Number, Point]]:
        """The moment of each phase that needs most, with its bytes but for those that stay for the whole step; for
        plans of numbers.
        """
        best: dict[str, tuple[Number, Point]] = {}
        for point in self.points:
            size = self._rest(point) + self._here(point)
            if point.phase not in best or size > best[point.phase][0]:
                best[point.phase] = size, point
        return list(best.values())

    def moments(self) -> Iterator[tuple[Term, Number]]:
        """The moments that need most of their phase in some plan of an array, in the order of `phases`, each with
        where it is that: arrays of bool, or a bool that holds for all plans.
        """
        fullest: dict[str, list[tuple[Point, Number]]] = {}
        most: dict[str, Number] = {}
        seen: set[tuple[object, ...]] = set()
        for point in self.points:
            key = (point.phase, point.place, id(point.live), point.table_made)
            if key in seen:  # as large as one before it, which stands for both
                continue
            seen.add(key)
            size = self._rest(point) + self._here(point)
            before = fullest.get(point.phase)
            if before is None:
                fullest[point.phase], most[point.phase] = [(point, True)], size
                continue
            larger = size > most[point.phase]
            if is_any(larger):
                left = [(other, where & (larger ^ True)) for other, where in before]
                fullest[point.phase] = [*((other, where) for other, where in left if is_any(where)), (point, larger)]
                most[point.phase] = maximum(most[point.phase], size)
        for points_of_phase in fullest.values():
            for point, where in points_of_phase:
                yield self._term(self._phase(point)), where
        for phase in (self._optimizer_step, *self._around):
            yield self._term(phase), True

    @cached_property
    def _around(self) -> tuple[Phase, ...]:
        return (*around(self), *([_of_tower(self)] if self.images else []))

    @cached_property
    def images(self) -> list[Term]:
        """What stays of images from the vision tower's forward to its backward."""
        if self.step.tower is None:
            return []
        from tonnage.estimate.step.images import images_kept  # most runs are on text

        return images_kept(self)

    def _phase(self, point: Point) -> Phase:
        """All that a moment holds."""
        held = self._held_at(point)
        live = self.sizes.account(point.live, "activation")
        is_loss = point.everything and not point.operation and self.step.framework.loss_of_objective
        name = (
            "logits and loss"
            if point.phase == "loss" or is_loss
            else Message("current layer ({operation})", operation=point.operation)
        )
        at_work = [Term.sum(name, *live, unit="bytes")] if live else []
        temporary = self.sizes.account(point.live, "temporary")
        return held._replace(activations=[*held.activations, *at_work], temporary=[*temporary, *held.temporary])

    def _held_at(self, point: Point) -> Phase:
        """What a moment holds but for the tensors of the operations at work."""
        framework = self.step.framework
        gradients = self.gradients_at(point)
        buffers, passing = self.buffers_at(point), framework.passing(self, point)
        if passing:
            buffers = Term.sum(buffers.name, *buffers.children, *passing, unit="bytes")
        return Phase(
            point.phase,
            gradients,
            [
                self.kept_at(point),
                *self.images,
                *self.tensors.passing(point),
                *waiting(self, point),
                *self._outside_at(point),
            ],
            [*self._waiting(point), *framework.temporary(self, point)],
            buffers,
            framework.reserve(self, point, gradients.value),
        )

    @cached_property
    def _optimizer_step(self) -> Phase:
        return Phase(
            "optimizer step",
            self.everything,
            self._left_over[:1],
            [*self.step_copies.children, *self._left_over[1:]],
            self.step_buffers,
            self.step.framework.reserve(self, None, self.everything.value),
        )

    def _term(self, phase: Phase) -> Term:
        """Its tree, with what stays for the whole step."""
        parts = (
            self.weights,
            phase.gradients,
            phase.optimizer or self.optimizer,
            Term.sum("activations", *phase.activations, unit="bytes"),
            Term.sum("temporary", *phase.temporary, *self.lasting.children, unit="bytes"),
            phase.buffers,
        )
        tensors = sum(part.value for part in parts)
        overhead = training_overhead(tensors, self.plan, self.step.cluster, self._workspaces, phase.reserve)
        return Term.sum(phase.name, *parts, overhead)

    @cached_property
    def step_buffers(self) -> Term:
        """Buffers of communication in the optimizer's step."""
        return self.step.framework.buffers(self, None) or self._buffers("optimizer step")

    def buffers_at(self, point: Point) -> Term:
        """Buffers of communication at a moment."""
        return self.step.framework.buffers(self, point) or self._buffers(point.moment)

    @cached_property
    def lasting(self) -> Term:
        return Term.sum("buffers of the whole step", *self.step.framework.lasting(self), *self._moved, unit="bytes")

    @cached_property
    def _moved(self) -> list[Term]:
        """FSDP2 copies the shards of a unit to the accelerator before they are gathered; DeepSpeed does so parameter
        by parameter.
        """
        if (
            self.plan.offload.offload_parameters == "none"
            or not self.step.framework.copies_layer_shards
            or not self.stage.layers
        ):
            return []
        shards = [self.step.shard[block] for block, _ in self.stage.layers]
        width = sum(width_of(state.copy, self.step.updates) for state in self.runtime.weights)
        return [copies("shard of a layer, copied from the host", width, Term.max("largest layer", *shards))]

    @cached_property
    def _workspaces(self) -> list[Term]:
        return [*self.step.framework.workspaces(self), *self.paged_states_in_use]

    def kept_at(self, point: Point) -> Term:
        """What layers keep for backward at a moment, but for the one at work."""
        if point.everything:
            return self._layers
        if point.place not in self._kept_at:
            self._kept_at[point.place] = Term.sum("layers", *self._held(point), unit="bytes")
        return self._kept_at[point.place]

    @cached_property
    def _layers(self) -> Term:
        parts = [
            Term.product(
                Message("{block}s", block=block.name),
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
            Term.product(Message("{block}s", block=block.name), "bytes", layer_count(count), self.kept[block])
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
        terms = [self.sizes.term("gradient of the embeddings", self.step.model.hidden_size, width, TOKEN)]
        again = self.is_tied or self.runtime.gradients_persist
        if again and not self.gradients_sharded:
            terms.append(copies("gradient of the table before it is added", width, self.table))
        return [*terms, self._tied] if self.is_tied else terms

    @cached_property
    def weights(self) -> Term:
        """Weights on the accelerator."""
        stays, more = self.stays("weights", self.every_weight), self.step.framework.weights(self)
        return Term.sum("weights", *stays.children, *more, unit="bytes") if more else stays

    @cached_property
    def step_copies(self) -> Term:
        """The copies that the optimizer's step makes."""
        copied = self.step.framework.step_copies(self) or self.communication.step(self.trained_shard)
        if self.plan.optimizer_implementation != "foreach":
            return copied
        more = Term.sum("foreach", *foreach_copies(self.plan.optimizer, self.step.updates, self.updated), unit="bytes")
        return Term.sum("temporary", *copied.children, *self.stays("optimizer", more).children, unit="bytes")

    def gradients_at(self, point: Point) -> Term:
        """Gradients at a moment: all of them where they stay or are added to; else what backward has made so far."""
        own = self.step.framework.gradients(self, point)
        if own is not None:
            return own
        if self.runtime.gradients_persist or point.table_made or self._gradients_leave:
            return self.everything
        count = self.plan.num_microbatches
        parts = []
        if not self.step.scalar or count > 1:
            parts.append(Term.product("gradients of earlier micro-batches", "bytes", self._carried, self.everything))
        if not self.step.scalar or count == 1:
            fresh = Term.of("none of earlier micro-batches", f.gradients_fresh, m=count)
            parts.append(Term.product("gradients made so far", "bytes", fresh, self._made(point)))
        return Term.sum("gradients", *parts)

    @cached_property
    def _carried(self) -> Term:
        return Term.of("gradients of earlier micro-batches", f.gradients_carried, m=self.plan.num_microbatches)

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
                    Message("current unit ({operation})", operation=point.operation),
                    f.whole_parameters,
                    N=here,
                    z=1,
                )
            )
        parameters = Term.sum("parameters", *parts, unit="parameters")
        return Term.sum(
            "gradients",
            *(
                copies(state.name, width_of(state.copy, self.step.updates), parameters)
                for state in self.runtime.gradients
            ),
        )
