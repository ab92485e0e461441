"""Bounds that cost next to nothing: bytes that a plan needs at least, and seconds that a step takes at least.

What one rank does with one layer is walked once for all pipelines, numbers of replicas and ZeRO stages: the same
layers, with the same exchanges inside of them, are in every one of these plans. All else is taken as nothing: table and
head, states that are gathered, buffers, what replicas send each other, the optimizer. So no plan is turned away that
the whole estimate would keep (tests/search/test_training_bounds.py).
"""

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from tonnage.architectures import Block
from tonnage.estimate.hardware.network import Collective
from tonnage.estimate.plan.pipeline_boxes import microbatches_per_round
from tonnage.estimate.step.communication import width_of
from tonnage.estimate.step_time.layer_time import WHEN, Passes
from tonnage.estimate.step_time.step import StepTime
from tonnage.formulas.memory import interleaved_microbatches_in_flight, microbatches_in_flight
from tonnage.formulas.pipeline import bubble_seconds
from tonnage.kernel.formula import is_any
from tonnage.numerics.optimizers import optimizer
from tonnage.numerics.precisions import TRAINING_RECIPES
from tonnage.runtimes import training_runtime
from tonnage.search.training.layers import Layers, Shape, known_shape, layers_of, shape_of
from tonnage.search.training.pipelines import Pipeline, with_choices
from tonnage.search.training.space import Group, Space, Stack
from tonnage.search.training.validity import Columns, Points, columns_of
from tonnage.search.training.walk import WIDE
from tonnage.spec import TrainingPlan

PLAIN = (
    None,
    "1f1b",
    "interleaved-1f1b",
)  # schedules whose micro-batches in flight, and whose bubble, are counted here
OFFLOADS = ("offload_optimizer", "offload_parameters", "offload_activations")


class Bounds:
    """Lower bounds of memory and time for the plans of a space."""

    def __init__(self, space: Space):
        self.space = space
        self._known: dict[tuple[Any, ...], Layers | None] = space.known_layers

    def of(self, group: Group, columns: Columns, left: np.ndarray) -> "LeastOfGroup | None":
        """Bounds of a group, some of whose plans are valid (`left`); None where nothing is known of it."""
        layers = self._layers(group, columns, left)
        if layers is None:
            return None
        pipeline = Pipeline(group.stages, group.chunks, group.layout)
        stack = Stack(group.choices, (pipeline,), group.block, group.inner)
        shape = shape_of(self.space, stack, layers.plan, tuple(layers.each))
        return LeastOfGroup(Least(self.space, stack, layers, shape))

    def of_stack(self, stack: Stack, group: Group, columns: Columns, left: np.ndarray) -> "Least | None":
        """Bounds of all pipelines of a stack. `group`, `columns`, `left`: one of its pipelines, some of whose plans
        are valid.
        """
        layers = self._layers(group, columns, left)
        if layers is None:
            return None
        return Least(self.space, stack, layers, known_shape(self.space, stack, layers.plan, tuple(layers.each)))

    def _layers(self, group: Group, columns: Columns, left: np.ndarray) -> "Layers | None":
        key = _key(group)
        if key not in self._known:
            self._known[key] = layers_of(self.space, group, columns, left)
        return self._known[key]

    def forget(self) -> None:
        """Let go of the layers that were walked, where other blocks of columns come."""
        if self.space.has_windows:
            self._known.clear()

    def floor(self, group: Group | Stack) -> float | None:
        """Accelerator-seconds of a token that no plan of the group is below, whatever its pipeline; None where its
        layers were not walked yet.
        """
        layers = self._known.get(_key(group))
        return None if layers is None or layers.rows != group.rows else float(np.min(layers.floor))


def _key(group: Group | Stack) -> tuple[Any, ...]:
    """The options that decide the layers of a group: all but its pipeline and its ZeRO stage."""
    return *sorted((name, value) for name, value in group.choices.items() if name != "zero_stage"), group.block


class _OfPoints(StepTime):
    """Exchanges of plans whose sizes are arrays, of shape (plans,), with layers that were walked: `rows` says which of
    their rows each plan has.
    """

    def __init__(self, of: "Layers", plan: TrainingPlan, rows: np.ndarray):
        super().__init__(of.step, of.timed.rates)
        self.of, self.rows, self.plan, self.step = of, rows, plan, copy(of.step)
        self.step.sizes = copy(of.step.sizes)
        for name in ("s", "b", "c", "t"):
            setattr(self.step.sizes, name, _at(getattr(of.step.sizes, name), rows))

    def gathering(self, block: Block) -> Any:
        """Seconds that gathering its weights, and scattering its gradients, adds to a layer."""
        of, plan, computed, passes = self.of, self.plan, Passes(), Passes()
        for when in WHEN:
            computed.waits[when] = _at(of.timed.layers[block].computing(when), self.rows)
        held = _at(of.held[block], self.rows)
        experts = _at(of.routed[block], self.rows) if is_any(plan.expert_parallel_size > 1) else None
        self._gather(passes, computed, held, held, 1 if plan.zero_stage == 3 else 0, experts)
        return sum(passes.sending(when) for when in WHEN)


def _at(values: Any, rows: np.ndarray) -> Any:
    """The values of these rows; what is no array is the same for all of them."""
    return values[rows] if getattr(values, "ndim", 0) else values


class LeastOfGroup:
    """The bounds of one group: arrays of shape (rows, machines)."""

    def __init__(self, least: "Least"):
        machines = len(least.space.worlds)
        self._shape = least.stack.rows, machines
        row, machine = (values.reshape(-1) for values in np.indices(self._shape))
        self._bounds = least.at(Points(np.zeros_like(row), row, machine))

    def seconds_per_token(self) -> np.ndarray:
        """As LeastOfPoints.seconds_per_token."""
        return np.reshape(self._bounds.seconds_per_token(exchanges=True), self._shape)

    def needed(self) -> np.ndarray:
        """As LeastOfPoints.needed."""
        return np.reshape(self._bounds.needed(), self._shape)


class _Beside(NamedTuple):
    """Seconds beside what layers take by themselves: of each micro-batch, handed on to the next stage; once a step;
    and what gathering weights adds to one micro-batch through all layers, and through the last stage. Numbers, or
    arrays of shape (plans,).
    """

    micro_batch: Any = 0.0
    once: Any = 0.0
    through: Any = 0.0
    last: Any = 0.0


class _Held(NamedTuple):
    """Of a stage, on one rank and not sharded: parameters but for routed experts', these, and the former of its layers
    alone; and the bytes that its layers keep of one micro-batch. Shape (plans,).
    """

    dense: np.ndarray
    routed: np.ndarray
    inner: np.ndarray
    kept: np.ndarray


class Least:
    """The bounds of a stack, as far as its pipelines and its rows decide them: arrays of shape (pipelines, rows)."""

    def __init__(self, space: Space, stack: Stack, layers: Layers, shape: Shape):
        self.space, self.stack, self.layers, self.shape = space, stack, layers, shape
        self.is_plain = with_choices(space.options, stack.choices).pipeline_schedule in PLAIN
        self.stages, self.chunks = stack.stages, stack.chunks

    def part(self, which: slice) -> "Least":
        """The bounds of pipelines that follow each other."""
        if which == slice(0, len(self.stack.pipelines)):
            return self
        stack = replace(self.stack, pipelines=self.stack.pipelines[which])
        return Least(self.space, stack, self.layers, self.shape.part(which))

    def at(self, points: Points) -> "LeastOfPoints":
        """The bounds of some of the plans."""
        return LeastOfPoints(self, points, columns_of(self.space, self.stack, points))

    def of_rows(self, counts: np.ndarray, values: Mapping[Block, Any]) -> np.ndarray:
        """The sum over layers of a value of each kind of them: a row for each row of `counts`."""
        rows = self.stack.rows
        return np.asarray(
            counts @ np.array([np.broadcast_to(values.get(one, 0.0), (rows,)) for one in self.shape.blocks])
        )

    @cached_property
    def slowest(self) -> np.ndarray:
        """Seconds of a micro-batch in the layers of the stage that takes longest."""
        of_stages = self.of_rows(self.shape.stages, self.layers.each)
        return np.asarray(np.maximum.reduceat(of_stages, self.shape.starts, axis=0))

    @cached_property
    def last(self) -> np.ndarray:
        """Seconds of a micro-batch in the last stage."""
        return self.of_rows(self.shape.last, self.layers.each) + self.layers.head

    @cached_property
    def fullest(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters of the layers of the stage that has most of them: but for routed experts', and these."""
        counts, starts = self.shape.fullest
        held, routed = self.layers.held, self.layers.routed
        dense = {one: held[one] - routed[one] for one in self.shape.blocks}
        of_stages = (self.of_rows(counts, values) for values in (dense, routed))
        first, second = (np.minimum.reduceat(values, starts, axis=0) for values in of_stages)
        return first, second

    @cached_property
    def all_layers(self) -> list[float]:
        """Layers of each kind in the whole model."""
        counts = dict(self.layers.step.stages[0].layers)
        return [counts.get(block, 0) for block in self.shape.blocks]

    @cached_property
    def ends(self) -> tuple[_Held, _Held]:
        """What the first and the last stage of each pipeline hold."""
        alone = (self.stages == 1)[:, None]
        return self._held(self.shape.first, True, alone), self._held(self.shape.last, alone, True)

    def _held(self, counts: np.ndarray, has_table: Any, has_head: Any) -> _Held:
        layers = self.layers
        routed = self.of_rows(counts, layers.routed)
        inner = self.of_rows(counts, layers.held) - routed
        ends = layers.table * has_table + layers.after * has_head
        return _Held(inner + ends, routed, inner, self.of_rows(counts, layers.kept))


class LeastOfPoints:
    """The bounds of some plans of a stack: arrays of shape (plans,). `columns`: their sizes."""

    def __init__(self, least: Least, points: Points, columns: Columns):
        self.least, self.points, self.columns = least, points, columns
        self.space, self.layers, self.shape = least.space, least.layers, least.shape
        self.stages, self.chunks = least.stages[points.pipeline], least.chunks[points.pipeline]

    def __len__(self) -> int:
        return len(self.points)

    def only(self, which: np.ndarray) -> "LeastOfPoints":
        """Those of fewer plans."""
        if which.all():
            return self
        columns = {name: values[which] for name, values in self.columns.items()}
        return LeastOfPoints(self.least, self.points.only(which), columns)

    def _of_rows(self, values: Any) -> Any:
        """Of values of rows those of the plans."""
        return _at(values, self.points.row)

    def _of_pairs(self, values: np.ndarray) -> np.ndarray:
        """Of values of pipelines and rows those of the plans."""
        return np.asarray(np.broadcast_to(values, (len(self.least.stages), self.least.stack.rows))[self._pairs])

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return self.points.pipeline, self.points.row

    def seconds_per_token(self, exchanges: bool = False) -> np.ndarray:
        """Seconds per token of a step at least: all micro-batches on the stage that takes longest, and what it
        waits while a pipeline fills and drains. `exchanges`: also what ranks send each other outside of layers, and
        the optimizer: nearer to the estimate, and dearer.
        """
        columns, p, v, m = self.columns, self.stages, self.chunks, self.columns["num_microbatches"]
        beside = self._beside() if exchanges else _Beside()
        through = self._of_rows(self.layers.through) + beside.through
        step = m * (through / p)
        if self.least.is_plain:
            last = self._of_pairs(self.least.last) + beside.last
            slowest = np.maximum(np.maximum(self._of_pairs(self.least.slowest), through / p), last)
            # 1F1B: the first micro-batch comes through all stages before the last one, and the last one goes back
            step = np.maximum(np.where(v == 1, (m - 1) * last + through, step), m * slowest)
            several = v > 1
            if several.any():  # other numbers than whole rounds are played out, and may wait less
                waits = bubble_seconds.evaluate(tau=through, tau_step=slowest, v=v)
                step = np.where(several & (m % p == 0), step + waits, step)
            step = np.maximum(step, through)  # a micro-batch passes all stages
        tokens = columns["sequence_length"] * columns["micro_batch_size"] * columns["data_parallel_size"] * m
        return np.asarray((step + m * beside.micro_batch + beside.once + self.layers.fixed) / tokens)

    @np.errstate(invalid="ignore")  # of groups of one rank, which send nothing (`of`): a root of less than nothing
    def _beside(self) -> _Beside:
        """What depends on the numbers of stages and replicas: exchanges as the estimate has them, of the layers alone
        where it has tables and heads too, and at least what cannot be hidden of those that run beside kernels.
        """
        layers, shape, columns = self.layers, self.shape, self.columns
        plan = replace(
            layers.uncut,
            **{name: columns[name] * 1.0 for name in (*WIDE, "data_parallel_size")},
            zero_stage=self.least.stack.choices["zero_stage"],
            replicate_size=layers.plan.replicate_size,
            pipeline_parallel_size=2,
            virtual_pipeline_size=self.chunks,
        )
        timed = _OfPoints(layers, plan, self.points.row)
        factor = timed.factor

        def of(seconds: Any) -> np.ndarray:
            """Seconds of each plan. One rank alone sends nothing, whatever its formula says."""
            return np.fmax(np.broadcast_to(seconds * factor, self.stages.shape), 0.0)

        between = of(timed.between[0]) * (self.stages > 1)
        if timed.gathers:
            more = [of(timed.gathering(block)) for block in shape.blocks]
            through = sum(one * count for one, count in zip(more, self.least.all_layers, strict=True))
            of_last = shape.last[self.points.pipeline].T
            return _Beside(between, 0.0, through, sum(one * count for one, count in zip(more, of_last, strict=True)))
        if not self.least.is_plain or layers.adds_layers:
            return _Beside(between)
        dense, routed = map(self._of_pairs, self.least.fullest)
        recipe, held = layers.step.recipe, dense + routed
        experts = routed if is_any(plan.expert_parallel_size > 1) else None
        kind: Collective = "reduce_scatter" if plan.zero_stage else "all_reduce"
        sent = timed.among(kind, held, experts, recipe.main_gradient_bytes).seconds
        updated: Any = held
        if plan.zero_stage:
            sent = sent + timed.among("all_gather", held, experts, recipe.gathered_bytes).seconds
            others = plan.expert_parallel_size * plan.expert_tensor_parallel_size
            sharing = np.maximum(timed.shards * plan.tensor_parallel_size / others, 1)
            updated = dense / timed.shards + routed / sharing
        once = of((1 - timed.rates.hidden) * sent)
        if all(plan.field(name) == "none" for name in OFFLOADS):
            once = once + of(updated * timed.updated_bytes / timed.kernels.bandwidth)
        return _Beside(between, once * shape.known[self.points.pipeline])

    def needed(self) -> np.ndarray:
        """The high end of the band of bytes that the first and the last stage hold at least: their states, what
        backward needs of each micro-batch in flight, and what the layer or the loss at work holds beside it.
        """
        plan, layers = self.layers.plan, self.layers
        if any(plan.field(name) != "none" for name in OFFLOADS):
            return np.zeros(len(self))
        p = self.stages
        work, loss = self._of_rows(layers.work), self._of_rows(layers.loss)
        both = np.maximum(work, loss)
        shards_units = training_runtime(plan.runtime).shards_units
        # FSDP2's stages are fullest at other moments: what runs then is not what runs first
        in_pipeline = np.zeros(1) if shards_units else work
        first, last = (_Held(*map(self._of_pairs, held)) for held in self.least.ends)
        most = self._of_stage(first, 0, np.where(p == 1, both, in_pipeline))
        if (p > 1).any() and not shards_units:
            most = np.maximum(most, np.where(p > 1, self._of_stage(last, p - 1, both), 0))
        known = self.shape.known[self.points.pipeline]
        return np.asarray((most + self._of_rows(layers.overhead)) * self._of_rows(layers.band) * known)

    def _of_stage(self, stage: _Held, rank: Any, work: np.ndarray) -> Any:
        """Bytes of one stage of each plan. `work`: what is held by what runs while all layers keep theirs."""
        v, m, p = self.chunks, self.columns["num_microbatches"], self.stages
        flying: Any = 0
        if self.least.is_plain:
            flying = microbatches_in_flight.evaluate(p=p, i=rank, m=m)
            if (v > 1).any():
                chunks_flying = interleaved_microbatches_in_flight.evaluate(
                    p=p, i=rank, m=m, v=v, n_turn=microbatches_per_round(m, p)
                )
                flying = np.where(v > 1, chunks_flying, flying)
        units = self._units(stage, m > flying) + self._handed_on()
        in_layers = stage.kept * flying + np.maximum(work, units)
        return self._states(stage) + np.maximum(in_layers, self._gradients_made(stage))

    def _states(self, stage: _Held) -> Any:
        """Weights, gradients that stay, and the optimizer's states of a stage."""
        plan = self.layers.plan
        runtime, recipe = training_runtime(plan.runtime, plan.runtime_version), TRAINING_RECIPES[plan.precision]
        zero = self.least.stack.choices["zero_stage"]
        states = [*runtime.weights, *(runtime.gradients if runtime.gradients_persist else ())]
        states += runtime.masters if recipe.master_bytes else ()
        widths = [(width_of(state.copy, recipe), zero >= state.sharded_from) for state in states]
        if plan.optimizer == "adamw":  # the states of others depend on shapes
            held = optimizer(plan.optimizer).total_bytes(1, 1, update_bytes=recipe.update_bytes)
            widths.append((held, zero >= runtime.optimizer_sharded_from))
        return self._bytes(stage, widths)

    def _units(self, stage: _Held, goes_on: Any) -> Any:
        """What FSDP2 holds of whole layers: under a pipeline gradients that it sums, and with ZeRO-2 units that stay
        gathered (estimate.frameworks.fsdp2_units). `goes_on`: whether a micro-batch comes after the first one's
        backward, so that gradients are there beside all that layers keep.
        """
        plan, recipe = self.layers.plan, TRAINING_RECIPES[self.layers.plan.precision]
        if not training_runtime(plan.runtime).shards_units:
            return 0
        total: Any = 0
        layers = stage._replace(dense=stage.inner)
        if recipe.reduce_bytes != recipe.compute_bytes:
            total = self._bytes(layers, [(recipe.reduce_bytes, False)]) * ((self.stages > 1) & goes_on)
        if self.least.stack.choices["zero_stage"] == 2 and not plan.kernels.float8_all_gather:
            total = total + self._bytes(layers, [(recipe.compute_bytes, False)])
        return total

    def _handed_on(self) -> Any:
        """What the first stage of torch's pipelines receives gradients in: a buffer for every micro-batch
        (estimate.frameworks.fsdp2_units).
        """
        if not training_runtime(self.layers.plan.runtime).shards_units:
            return 0
        width = TRAINING_RECIPES[self.layers.plan.precision].compute_bytes
        ranks = self.columns["context_parallel_size"] * self.columns["tensor_parallel_size"]
        tokens = self.columns["sequence_length"] * self.columns["micro_batch_size"] / ranks
        size = self.columns["num_microbatches"] * tokens * self.space.model.hidden_size * width
        return size * (self.stages > 1)

    def _gradients_made(self, stage: _Held) -> Any:
        """All gradients, where backward makes them and the optimizer's step finds them."""
        plan = self.layers.plan
        runtime = training_runtime(plan.runtime, plan.runtime_version)
        if runtime.gradients_persist or plan.optimizer_in_backward:
            return 0
        recipe, zero = TRAINING_RECIPES[plan.precision], self.least.stack.choices["zero_stage"]
        widths = [(width_of(state.copy, recipe), zero >= state.sharded_from) for state in runtime.gradients]
        made = self._bytes(stage, widths)
        accumulates = runtime.shards_units and recipe.reduce_bytes != recipe.compute_bytes
        return made * (self.stages == 1) if accumulates else made

    def _bytes(self, stage: _Held, widths: list[tuple[float, bool]]) -> Any:
        """Of the parameters of a stage: (bytes of each, whether it is sharded)."""
        whole = sum(width for width, sharded in widths if not sharded)
        shared = sum(width for width, sharded in widths if sharded)
        dense, routed = stage.dense, stage.routed
        total: Any = whole * (dense + routed) if whole else 0
        if shared:  # a share is in proportion to the ranks that have one (formulas.memory)
            t, e, q = (
                self.columns[name]
                for name in ("tensor_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size")
            )
            copies = self.layers.plan.replicate_size
            ranks = self.columns["data_parallel_size"] * self.columns["context_parallel_size"] / copies
            total = total + shared * (dense / ranks)
            if routed.any():
                total = total + shared * (routed / np.maximum(ranks * t / (e * q), 1))
        return total
