"""What the bounds of plans are made of: one micro-batch through all layers of a choice of names, walked once for all
pipelines, numbers of replicas and ZeRO stages; and the layers of the stages of pipelines.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block
from tonnage.estimate.bands import training_band
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.memory import Step
from tonnage.estimate.step.communication import training_overhead
from tonnage.estimate.step.pipeline_layout import chunk_layers
from tonnage.estimate.step.points import running
from tonnage.estimate.step.rank import expert_parameters, op_parameters, stages
from tonnage.estimate.step.stage import StageMemory
from tonnage.estimate.step_time.step import StepTime
from tonnage.kernel.formula import maximum, minimum
from tonnage.runtimes import training_runtime
from tonnage.search.training.pipelines import LAYOUTS, Pipeline, chunks_of, with_choices
from tonnage.search.training.space import Group, Space, Stack
from tonnage.search.training.validity import Columns
from tonnage.search.training.walk import REFUSALS, WIDE, template
from tonnage.spec import PipelineLayout, TrainingPlan


class _WithoutGathers(StepTime):
    """Kernels and exchanges inside of layers: what is gathered for them depends on how many ranks share it."""

    gathers = False


class Layers:
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
        timed = _WithoutGathers(step, rates())
        self.step, self.timed, self.uncut = step, timed, uncut
        self.plan, self.rows = plan, len(sizes["micro_batch_size"])
        self.through = timed.stages[0].seconds * timed.factor  # one micro-batch through all layers, and the head
        self.each = {block: passes.seconds * timed.factor for block, passes in timed.layers.items()}
        self.fixed = timed.factor * timed.rates.step
        memory = StageMemory(step, step.stages[0])
        self.kept = {block: kept_bytes.value for block, kept_bytes in memory.kept.items()}
        self.held = {block: step.held[block].value for block in self.each}  # parameters on one rank, not sharded
        self.routed = {block: expert_parameters(block, step.whole) for block in self.each}
        stage = step.stages[0]
        self.table, self.after = (  # parameters before the layers, and after them
            sum(term.value for op in ops for term in op_parameters(op, step.whole))
            for ops in (stage.before, stage.after)
        )
        self.work, self.loss = _at_work(memory, self.kept)
        self.overhead = training_overhead(0, uncut, space.largest, [], []).value
        band = training_band(plan, space.largest)
        self.band = band.high if band else 1.0
        # layers that the framework adds to those of the model, such as of multi-token prediction
        self.adds_layers = stage.layers != stages(space.model, 1)[0].layers
        ranks = sizes["tensor_parallel_size"] * sizes["context_parallel_size"]
        # accelerator-seconds of a token that no plan of a row is below, whatever its pipeline
        self.floor = np.asarray(self.through * ranks / (sizes["sequence_length"] * sizes["micro_batch_size"]))
        # what the stage with the loss does beside its layers
        in_layers = sum(count * self.each[block] for block, count in stage.layers)
        self.head = maximum(self.through - in_layers, 0)


def _at_work(memory: StageMemory, kept: Mapping[Block, Any]) -> tuple[Any, Any]:
    """Bytes that operations hold while all layers still keep what backward needs: of the layer that begins backward,
    whichever kind it is, beyond what it keeps; and of the loss.
    """
    loss: Any = 0
    of_layers: dict[Block, Any] = {}
    order = running(memory.stage, 0)
    for point in memory.points:
        live = memory.sizes.total(point.bytes)
        if point.everything:
            loss = maximum(loss, live)
        elif point.position >= 0 and point.head_made:  # in backward, with what the layer itself keeps among it
            block = order[point.position]
            of_layers[block] = maximum(of_layers.get(block, 0), live - kept.get(block, 0))
    work = reduce(minimum, of_layers.values()) if of_layers else 0
    return maximum(work, 0), loss


def layers_of(space: Space, group: Group, columns: Columns, left: np.ndarray) -> Layers | None:
    """The layers of a group; None where layers do not all train and leave the same, or cannot be."""
    try:
        plan = template(space, group, columns, left)
        if plan.tuning.method != "full" or plan.post_training.objective not in ONE_MODEL:
            return None
        sizes = {name: np.asarray(columns[name][:, 0], dtype=np.float64) for name in WIDE}
        return Layers(space, plan, sizes)
    except REFUSALS:
        return None


# Objectives whose update trains one model on one sequence a row: what runs or waits beside it only adds to the bounds.
ONE_MODEL = ("sft", "grpo", "dapo", "rloo")


class Shape(Struct, frozen=True, eq=False):
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

    @property
    def fullest(self) -> tuple[np.ndarray, np.ndarray]:
        """The stages with most layers, and where those of each pipeline start among them."""
        layers = self.stages.sum(axis=1)
        lengths = np.diff(self.starts, append=len(layers))
        chosen = layers == np.repeat(np.maximum.reduceat(layers, self.starts), lengths)
        return self.stages[chosen], np.concatenate([[0], np.cumsum(np.add.reduceat(chosen, self.starts))[:-1]])

    def part(self, which: slice) -> "Shape":
        """That of pipelines that follow each other."""
        ends = [*self.starts.tolist(), len(self.stages)]
        return Shape(
            blocks=self.blocks,
            stages=self.stages[ends[which.start] : ends[which.stop]],
            starts=self.starts[which] - ends[which.start],
            first=self.first[which],
            last=self.last[which],
            known=self.known[which],
        )


def known_shape(space: Space, stack: Stack, plan: TrainingPlan, blocks: tuple[Block, ...]) -> Shape:
    """As `_shape`, of pipelines that the space keeps: made once for all that differ in other choices."""
    layouts = (stack.choices.get(name) for name in LAYOUTS)
    key = plan.runtime, plan.runtime_version, *layouts, id(stack.pipelines), blocks
    if key not in space.known_shapes:
        space.known_shapes[key] = shape_of(space, stack, plan, blocks)
    return cast(Shape, space.known_shapes[key])


def shape_of(space: Space, stack: Stack, plan: TrainingPlan, blocks: tuple[Block, ...]) -> Shape:
    of_pipelines = [_stages_of(space, stack, plan, pipeline) for pipeline in stack.pipelines]
    rows = [
        list(dict.fromkeys(tuple(layers.get(block, 0) for block in blocks) for layers in of)) for of in of_pipelines
    ]
    return Shape(
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
