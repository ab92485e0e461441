"""Bounds that cost next to nothing: bytes that a plan needs at least, and seconds that a step takes at least.

What one rank does with one layer is walked once for all pipelines, numbers of replicas and ZeRO stages: the same
layers, with the same exchanges inside of them, are in every one of these plans. All else is taken as nothing: table and
head, states that are gathered, buffers, what replicas send each other, the optimizer. So no plan is turned away that
the whole estimate would keep (tests/search/test_training_bounds.py).
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block
from tonnage.estimate.bands import training_band
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.memory import Step
from tonnage.estimate.plan.pipeline_boxes import microbatches_per_round
from tonnage.estimate.step.communication import width_of
from tonnage.estimate.step.pipeline_layout import chunk_layers
from tonnage.estimate.step.rank import expert_parameters, stages
from tonnage.estimate.step.stage import StageMemory
from tonnage.estimate.step_time.step import StepTime
from tonnage.formulas.memory import interleaved_microbatches_in_flight, microbatches_in_flight
from tonnage.formulas.pipeline import bubble_seconds
from tonnage.numerics.optimizers import optimizer
from tonnage.numerics.precisions import TRAINING_RECIPES
from tonnage.runtimes import training_runtime
from tonnage.search.training.pipelines import LAYOUTS, Pipeline, chunks_of, with_choices
from tonnage.search.training.space import Group, Space, Stack
from tonnage.search.training.validity import Columns
from tonnage.search.training.walk import REFUSALS, WIDE, template
from tonnage.spec import PipelineLayout, TrainingPlan

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
        self._known: dict[tuple[Any, ...], _Layers | None] = {}

    def of(self, group: Group, columns: Columns, left: np.ndarray) -> "LeastOfGroup | None":
        """Bounds of a group, some of whose plans are valid (`left`); None where nothing is known of it."""
        layers = self._layers(group, columns, left)
        if layers is None:
            return None
        pipeline = Pipeline(group.stages, group.chunks, group.layout)
        stack = Stack(group.choices, (pipeline,), group.block, group.inner)
        shape = _shape(self.space, stack, layers.plan, tuple(layers.each))
        return LeastOfGroup(Least(self.space, stack, layers, shape), columns)

    def of_stack(self, stack: Stack, group: Group, columns: Columns, left: np.ndarray) -> "Least | None":
        """Bounds of all pipelines of a stack. `group`, `columns`, `left`: one of its pipelines, some of whose plans
        are valid.
        """
        layers = self._layers(group, columns, left)
        if layers is None:
            return None
        return Least(self.space, stack, layers, _known_shape(self.space, stack, layers.plan, tuple(layers.each)))

    def _layers(self, group: Group, columns: Columns, left: np.ndarray) -> "_Layers | None":
        key = _key(group)
        if key not in self._known:
            self._known[key] = _layers(self.space, group, columns, left)
        return self._known[key]

    def forget(self) -> None:
        """Let go of the layers that were walked: other blocks of columns come."""
        self._known.clear()

    def floor(self, group: Group | Stack) -> float | None:
        """Accelerator-seconds of a token that no plan of the group is below, whatever its pipeline; None where its
        layers were not walked yet.
        """
        layers = self._known.get(_key(group))
        if layers is None or layers.rows != group.rows:
            return None
        inner = group.inner
        ranks = inner["tensor_parallel_size"] * inner["context_parallel_size"]
        return float(np.min(layers.through * ranks / (inner["sequence_length"] * inner["micro_batch_size"])))


def _key(group: Group | Stack) -> tuple[Any, ...]:
    """The options that decide the layers of a group: all but its pipeline and its ZeRO stage."""
    return *sorted((name, value) for name, value in group.choices.items() if name != "zero_stage"), group.block


class _Layers:
    """One micro-batch through all layers, and what one layer of each kind keeps of it: arrays with an entry for each
    row of a group.
    """

    def __init__(self, space: Space, plan: TrainingPlan, sizes: dict[str, Any]):
        uncut = replace(
            plan,
            **sizes,
            pipeline_parallel_size=1,
            virtual_pipeline_size=1,
            pipeline_schedule="1f1b",
            num_microbatches=1,
            data_parallel_size=1,
            replicate_size=1,
            layout=PipelineLayout(),
        )
        step = Step(space.model, uncut, space.largest)
        timed = StepTime(step, rates())
        self.plan, self.rows = plan, len(sizes["micro_batch_size"])
        self.through = timed.stages[0].seconds * timed.factor  # one micro-batch through all layers, and the head
        self.each = {block: passes.seconds * timed.factor for block, passes in timed.layers.items()}
        self.fixed = timed.factor * timed.rates.step
        memory = StageMemory(step, step.stages[0])
        self.kept = {block: kept_bytes.value for block, kept_bytes in memory.kept.items()}
        self.held = {block: step.held[block].value for block in self.each}  # parameters on one rank, not sharded
        self.routed = {block: expert_parameters(block, step.whole) for block in self.each}
        band = training_band(plan, space.largest)
        self.band = band.high if band else 1.0
        # What the stage with the loss does beside its layers; None where layers also gather their weights.
        in_layers = sum(count * self.each[block] for block, count in step.stages[0].layers)
        self.head = None if timed.gathers else np.maximum(self.through - in_layers, 0.0)


def _layers(space: Space, group: Group, columns: Columns, left: np.ndarray) -> _Layers | None:
    """The layers of a group; None where layers do not all train and leave the same, or cannot be."""
    try:
        plan = template(space, group, columns, left)
        if plan.tuning.method != "full" or plan.post_training.objective != "sft":
            return None
        sizes = {name: np.asarray(columns[name][:, 0], dtype=np.float64) for name in WIDE}
        return _Layers(space, plan, sizes)
    except REFUSALS:
        return None


class _Shape(Struct, frozen=True, eq=False):
    """Layers of the stages of several pipelines, as counts of each kind of layer in `blocks`.

    `stages`: a row for each distinct stage, those of one pipeline one after the other from `starts` on; `first`,
    `last`: a row for each pipeline; `known`: False where a layout says the layers of a pipeline: its rows are zero.
    """

    blocks: tuple[Block, ...]
    stages: np.ndarray
    starts: np.ndarray
    first: np.ndarray
    last: np.ndarray
    known: np.ndarray

    def only(self, at: int) -> "_Shape":
        """That of one of the pipelines."""
        end = self.starts[at + 1] if at + 1 < len(self.starts) else len(self.stages)
        own = slice(at, at + 1)
        return _Shape(
            blocks=self.blocks,
            stages=self.stages[self.starts[at] : end],
            starts=np.zeros(1, dtype=np.int64),
            first=self.first[own],
            last=self.last[own],
            known=self.known[own],
        )


def _known_shape(space: Space, stack: Stack, plan: TrainingPlan, blocks: tuple[Block, ...]) -> _Shape:
    """As `_shape`, of pipelines that the space keeps: made once for all that differ in other choices."""
    layouts = (stack.choices.get(name) for name in LAYOUTS)
    key = plan.runtime, plan.runtime_version, *layouts, id(stack.pipelines), blocks
    if key not in space.known_shapes:
        space.known_shapes[key] = _shape(space, stack, plan, blocks)
    return cast(_Shape, space.known_shapes[key])


def _shape(space: Space, stack: Stack, plan: TrainingPlan, blocks: tuple[Block, ...]) -> _Shape:
    of_pipelines = [_stages_of(space, stack, plan, pipeline) for pipeline in stack.pipelines]
    rows = [
        list(dict.fromkeys(tuple(layers.get(block, 0) for block in blocks) for layers in of)) for of in of_pipelines
    ]
    return _Shape(
        blocks=blocks,
        stages=np.array([stage for of in rows for stage in of], dtype=np.float64),
        starts=np.cumsum([0, *(len(of) for of in rows[:-1])]),
        first=np.array([of[0] for of in rows], dtype=np.float64),
        last=np.array([[of[-1].get(block, 0) for block in blocks] for of in of_pipelines], dtype=np.float64),
        known=np.array([bool(of[0]) for of in of_pipelines]),
    )


def _stages_of(space: Space, stack: Stack, plan: TrainingPlan, pipeline: Pipeline) -> list[Mapping[Any, int]]:
    """Layers of each kind on each stage, the first one first; one stage of none where a layout says them."""
    options = with_choices(space.options, {**stack.choices, **pipeline.layout})
    chunks = chunks_of(space.model, pipeline.stages, pipeline.chunks, options)
    if chunks is None:
        if any(getattr(options, name) for name in LAYOUTS):
            return [{}]
        piped = replace(
            plan,
            pipeline_parallel_size=pipeline.stages,
            virtual_pipeline_size=pipeline.chunks,
            layout=PipelineLayout(),
        )
        chunks = chunk_layers(space.model, training_runtime(plan.runtime, plan.runtime_version), piped)
    return [dict(stage.layers) for stage in stages(space.model, pipeline.stages, chunks)]


class LeastOfGroup:
    """The bounds of one group: arrays of shape (rows, machines), or what broadcasts to it."""

    def __init__(self, least: "Least", columns: Columns):
        self._least, self._columns = least, columns

    def seconds_per_token(self) -> np.ndarray:
        """As Least.seconds_per_token."""
        return np.asarray(self._least.seconds_per_token(self._columns)[0])

    def needed(self) -> np.ndarray:
        """As Least.needed."""
        return np.asarray(self._least.needed(self._columns)[0])


class Least:
    """The bounds of a stack: arrays of shape (pipelines, rows, machines), or what broadcasts to it. `columns`: its
    sizes, of all its machines or of some.
    """

    def __init__(self, space: Space, stack: Stack, layers: _Layers, shape: _Shape):
        self.space, self.stack, self.layers, self.shape = space, stack, layers, shape
        options = with_choices(space.options, stack.choices)
        self.is_plain = options.pipeline_schedule in PLAIN

    def of_pipeline(self, at: int, columns: Columns) -> LeastOfGroup:
        """The bounds of one pipeline."""
        return LeastOfGroup(Least(self.space, self.stack.only([at]), self.layers, self.shape.only(at)), columns)

    def _of_rows(self, counts: np.ndarray, values: Mapping[Block, Any]) -> np.ndarray:
        """The sum over layers of a value of each kind of them: a row for each row of `counts`."""
        rows = self.stack.rows
        return np.asarray(
            counts @ np.array([np.broadcast_to(values.get(one, 0.0), (rows,)) for one in self.shape.blocks])
        )

    def seconds_per_token(self, columns: Columns) -> np.ndarray:
        """Seconds per token of a step at least: all micro-batches on the stage that takes longest, and what it
        waits while a pipeline fills and drains.
        """
        p, v, m = self.stack.stages, self.stack.chunks, columns["num_microbatches"]
        through = np.broadcast_to(self.layers.through, (self.stack.rows,))[:, None]
        step = m * (through / p)
        if self.is_plain:
            of_stages = self._of_rows(self.shape.stages, self.layers.each)
            slowest = np.maximum.reduceat(of_stages, self.shape.starts, axis=0)[:, :, None]
            slowest = np.maximum(slowest, through / p)
            if self.layers.head is not None:  # the last stage has the head too
                last = (self._of_rows(self.shape.last, self.layers.each) + self.layers.head)[:, :, None]
                slowest = np.maximum(slowest, last)
                # 1F1B: its first micro-batch comes through all other stages, and its last one goes back through them
                step = np.where(v == 1, (m - 1) * last + through, step)
            step = np.maximum(step, m * slowest)
            several = v > 1
            if several.any():  # other numbers than whole rounds are played out, and may wait less
                waits = bubble_seconds.evaluate(tau=through, tau_step=slowest, v=v)
                step = np.where(several & (m % p == 0), step + waits, step)
            step = np.maximum(step, through)  # a micro-batch passes all stages
        tokens = columns["sequence_length"] * columns["micro_batch_size"] * columns["data_parallel_size"] * m
        return np.asarray((step + self.layers.fixed) / tokens)

    def needed(self, columns: Columns) -> np.ndarray:
        """The high end of the band of bytes that layers of the first stage keep: their states, and what backward
        needs of each micro-batch in flight.
        """
        plan = self.layers.plan
        if any(plan.field(name) != "none" for name in OFFLOADS):
            return np.zeros((len(self.stack.pipelines), 1, 1))
        p, v, m = self.stack.stages, self.stack.chunks, columns["num_microbatches"]
        flying: Any = 0
        if self.is_plain:
            flying = microbatches_in_flight.evaluate(p=p, i=0, m=m)
            if (v > 1).any():
                chunks_flying = interleaved_microbatches_in_flight.evaluate(
                    p=p, i=0, m=m, v=v, n_turn=microbatches_per_round(m, p)
                )
                flying = np.where(v > 1, chunks_flying, flying)
        kept_bytes = self._of_rows(self.shape.first, self.layers.kept)[:, :, None]
        at_once = self._states(columns) + np.maximum(
            kept_bytes * flying + self._handed_on(columns) + self._units(columns), self._gradients_made(columns)
        )
        return np.asarray(at_once * self.layers.band * self.shape.known[:, None, None])

    def _states(self, columns: Columns) -> Any:
        """Weights, gradients that stay, and the optimizer's states of the first stage's layers."""
        plan = self.layers.plan
        runtime, recipe = training_runtime(plan.runtime, plan.runtime_version), TRAINING_RECIPES[plan.precision]
        zero = self.stack.choices["zero_stage"]
        states = [*runtime.weights, *(runtime.gradients if runtime.gradients_persist else ())]
        states += runtime.masters if recipe.master_bytes else ()
        widths = [(width_of(state.copy, recipe), zero >= state.sharded_from) for state in states]
        if plan.optimizer == "adamw":  # the states of others depend on shapes
            held = optimizer(plan.optimizer).total_bytes(1, 1, update_bytes=recipe.update_bytes)
            widths.append((held, zero >= runtime.optimizer_sharded_from))
        return self._bytes(columns, widths)

    def _units(self, columns: Columns) -> Any:
        """What FSDP2 holds of whole layers: under a pipeline gradients that it sums, and with ZeRO-2 units that stay
        gathered (estimate.frameworks.fsdp2_units).
        """
        plan, recipe = self.layers.plan, TRAINING_RECIPES[self.layers.plan.precision]
        if not training_runtime(plan.runtime).shards_units:
            return 0
        total: Any = 0
        if recipe.reduce_bytes != recipe.compute_bytes:
            total = self._bytes(columns, [(recipe.reduce_bytes, False)]) * (self.stack.stages > 1)
        if self.stack.choices["zero_stage"] == 2 and not plan.kernels.float8_all_gather:
            total = total + self._bytes(columns, [(recipe.compute_bytes, False)])
        return total

    def _handed_on(self, columns: Columns) -> Any:
        """What the first stage of torch's pipelines receives gradients in: a buffer for every micro-batch
        (estimate.frameworks.fsdp2_units).
        """
        if not training_runtime(self.layers.plan.runtime).shards_units:
            return 0
        width = TRAINING_RECIPES[self.layers.plan.precision].compute_bytes
        ranks = columns["context_parallel_size"] * columns["tensor_parallel_size"]
        tokens = columns["sequence_length"] * columns["micro_batch_size"] / ranks
        size = columns["num_microbatches"] * tokens * self.space.model.hidden_size * width
        return size * (self.stack.stages > 1)

    def _gradients_made(self, columns: Columns) -> Any:
        """All gradients, where backward makes them and the optimizer's step finds them."""
        plan = self.layers.plan
        runtime = training_runtime(plan.runtime, plan.runtime_version)
        if runtime.gradients_persist or plan.optimizer_in_backward:
            return 0
        recipe, zero = TRAINING_RECIPES[plan.precision], self.stack.choices["zero_stage"]
        widths = [(width_of(state.copy, recipe), zero >= state.sharded_from) for state in runtime.gradients]
        made = self._bytes(columns, widths)
        accumulates = runtime.shards_units and recipe.reduce_bytes != recipe.compute_bytes
        return made * (self.stack.stages == 1) if accumulates else made

    def _bytes(self, columns: Columns, widths: list[tuple[float, bool]]) -> Any:
        """Of the parameters of the first stage's layers: (bytes of each, whether it is sharded)."""
        whole = sum(width for width, sharded in widths if not sharded)
        shared = sum(width for width, sharded in widths if sharded)
        dense, routed = self._parameters
        total: Any = whole * (dense + routed) if whole else 0
        if shared:  # a share is in proportion to the ranks that have one (formulas.memory)
            t, e, q = (
                columns[name]
                for name in ("tensor_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size")
            )
            ranks = columns["data_parallel_size"] * columns["context_parallel_size"] / self.layers.plan.replicate_size
            total = total + shared * (dense / ranks)
            if routed.any():
                total = total + shared * (routed / np.maximum(ranks * t / (e * q), 1))
        return total

    @cached_property
    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters of the first stage's layers on one rank, none of them sharded: all but routed experts', and
        these. Shape (pipelines, rows, 1).
        """
        first, layers = self.shape.first, self.layers
        routed = self._of_rows(first, layers.routed)[:, :, None]
        return self._of_rows(first, layers.held)[:, :, None] - routed, routed
