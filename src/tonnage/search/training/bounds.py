"""Bounds that cost next to nothing: bytes that a plan needs at least, and seconds that a step takes at least.

What one rank does with one layer is walked once for all pipelines, numbers of replicas and ZeRO stages: the same
layers, with the same exchanges inside of them, are in every one of these plans. All else is taken as nothing: table and
head, states that are gathered, buffers, what replicas send each other, the optimizer. So no plan is turned away that
the whole estimate would keep (tests/search/test_training_bounds.py).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block
from tonnage.estimate.bands import training_band
from tonnage.estimate.hardware.network import Collective
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.memory import Step
from tonnage.estimate.plan.pipeline_boxes import microbatches_per_round
from tonnage.estimate.step.communication import training_overhead, width_of
from tonnage.estimate.step.pipeline_layout import chunk_layers
from tonnage.estimate.step.points import running
from tonnage.estimate.step.rank import expert_parameters, op_parameters, stages
from tonnage.estimate.step.stage import StageMemory
from tonnage.estimate.step_time.layer_time import Passes
from tonnage.estimate.step_time.step import StepTime
from tonnage.formulas.memory import interleaved_microbatches_in_flight, microbatches_in_flight
from tonnage.formulas.pipeline import bubble_seconds
from tonnage.kernel.formula import is_any, maximum, minimum
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


class _WithoutGathers(StepTime):
    """Kernels and exchanges inside of layers: what is gathered for them depends on how many ranks share it."""

    gathers = False


class _OfSizes(StepTime):
    """Exchanges of a step whose sizes are arrays of shape (pipelines, machines, rows), with layers that are walked."""

    layers: dict[Block, Passes]


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


def _layers(space: Space, group: Group, columns: Columns, left: np.ndarray) -> _Layers | None:
    """The layers of a group; None where layers do not all train and leave the same, or cannot be."""
    try:
        plan = template(space, group, columns, left)
        if plan.tuning.method != "full" or plan.post_training.objective not in ONE_MODEL:
            return None
        sizes = {name: np.asarray(columns[name][:, 0], dtype=np.float64) for name in WIDE}
        return _Layers(space, plan, sizes)
    except REFUSALS:
        return None


# Objectives whose update trains one model on one sequence a row: what runs or waits beside it only adds to the bounds.
ONE_MODEL = ("sft", "grpo", "dapo", "rloo")


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

    @property
    def fullest(self) -> tuple[np.ndarray, np.ndarray]:
        """The stages with most layers, and where those of each pipeline start among them."""
        layers = self.stages.sum(axis=1)
        lengths = np.diff(self.starts, append=len(layers))
        chosen = layers == np.repeat(np.maximum.reduceat(layers, self.starts), lengths)
        return self.stages[chosen], np.concatenate([[0], np.cumsum(np.add.reduceat(chosen, self.starts))[:-1]])

    def only(self, pipelines: Sequence[int]) -> "_Shape":
        """That of some of the pipelines."""
        ends = [*self.starts[1:], len(self.stages)]
        own = [np.arange(self.starts[at], ends[at]) for at in pipelines]
        return _Shape(
            blocks=self.blocks,
            stages=self.stages[np.concatenate(own)],
            starts=np.cumsum([0, *(len(stages_of) for stages_of in own[:-1])]),
            first=self.first[pipelines],
            last=self.last[pipelines],
            known=self.known[pipelines],
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
        return np.asarray(self._least.seconds_per_token(self._columns, exchanges=True)[0])

    def needed(self) -> np.ndarray:
        """As Least.needed."""
        return np.asarray(self._least.needed(self._columns)[0])


class _Beside(NamedTuple):
    """Seconds beside what layers take by themselves: of each micro-batch, handed on to the next stage; once a step;
    and what gathering weights adds to one micro-batch through all layers, and through the last stage. Numbers, or
    arrays of shape (pipelines, rows, machines).
    """

    micro_batch: Any = 0.0
    once: Any = 0.0
    through: Any = 0.0
    last: Any = 0.0


class _Held(NamedTuple):
    """Of a stage of each pipeline, on one rank and not sharded: parameters but for routed experts', these, and the
    former of its layers alone; and the bytes that its layers keep of one micro-batch. Shape (pipelines, rows, 1).
    """

    dense: np.ndarray
    routed: np.ndarray
    inner: np.ndarray
    kept: np.ndarray


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
        return LeastOfGroup(self.only([at]), columns)

    def only(self, pipelines: Sequence[int]) -> "Least":
        """The bounds of some of the pipelines."""
        return Least(self.space, self.stack.only(pipelines), self.layers, self.shape.only(pipelines))

    def _of_rows(self, counts: np.ndarray, values: Mapping[Block, Any]) -> np.ndarray:
        """The sum over layers of a value of each kind of them: a row for each row of `counts`."""
        rows = self.stack.rows
        return np.asarray(
            counts @ np.array([np.broadcast_to(values.get(one, 0.0), (rows,)) for one in self.shape.blocks])
        )

    def seconds_per_token(self, columns: Columns, exchanges: bool = False) -> np.ndarray:
        """Seconds per token of a step at least: all micro-batches on the stage that takes longest, and what it
        waits while a pipeline fills and drains. `exchanges`: also what ranks send each other outside of layers, and
        the optimizer: nearer to the estimate, and dearer.
        """
        p, v, m = self.stack.stages, self.stack.chunks, columns["num_microbatches"]
        beside = self._beside(columns) if exchanges else _Beside()
        through = np.broadcast_to(self.layers.through, (self.stack.rows,))[:, None] + beside.through
        step = m * (through / p)
        if self.is_plain:
            of_stages = self._of_rows(self.shape.stages, self.layers.each)
            slowest = np.maximum.reduceat(of_stages, self.shape.starts, axis=0)[:, :, None]
            last = (self._of_rows(self.shape.last, self.layers.each) + self.layers.head)[:, :, None] + beside.last
            slowest = np.maximum(np.maximum(slowest, through / p), last)
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
    def _beside(self, columns: Columns) -> "_Beside":
        """What depends on the numbers of stages and replicas: exchanges as the estimate has them, of the layers alone
        where it has tables and heads too, and at least what cannot be hidden of those that run beside kernels.
        """
        layers, shape, rows = self.layers, self.shape, self.stack.rows
        wide = np.broadcast_shapes(columns["data_parallel_size"].shape, (len(self.stack.pipelines), rows, 1))
        plan = replace(  # rows come last: so are the arrays of layers
            layers.uncut,
            zero_stage=self.stack.choices["zero_stage"],
            data_parallel_size=np.broadcast_to(columns["data_parallel_size"], wide).swapaxes(1, 2) * 1.0,
            replicate_size=layers.plan.replicate_size,
            pipeline_parallel_size=2,
            virtual_pipeline_size=self.stack.chunks,
        )
        timed = _OfSizes(layers.step, layers.timed.rates)
        timed.plan, timed.layers = plan, layers.timed.layers
        factor, within = timed.factor, (len(shape.known), wide[2], rows)

        def of(seconds: Any) -> np.ndarray:
            """Seconds as an array of the shape of plans. One rank alone sends nothing, whatever its formula says."""
            return np.fmax(np.broadcast_to(seconds * factor, within), 0.0).swapaxes(1, 2)

        between = of(timed.between[0]) * (self.stack.stages > 1)
        if timed.gathers:
            more = [
                of(timed.with_gathers(block).seconds - layers.timed.layers[block].seconds) for block in shape.blocks
            ]
            through = sum(one * count for one, count in zip(more, self._all_layers, strict=True))
            last = sum(one * count[:, None, None] for one, count in zip(more, shape.last.T, strict=True))
            return _Beside(between, 0.0, through, last)
        if not self.is_plain or layers.adds_layers:
            return _Beside(between)
        fullest, starts = shape.fullest
        dense, routed = (
            np.minimum.reduceat(self._of_rows(fullest, values), starts, axis=0)[:, None, :]
            for values in ({one: layers.held[one] - layers.routed[one] for one in shape.blocks}, layers.routed)
        )
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
        return _Beside(between, once * shape.known[:, None, None])

    @cached_property
    def _all_layers(self) -> list[float]:
        """Layers of each kind in the whole model."""
        counts = dict(self.layers.step.stages[0].layers)
        return [counts.get(block, 0) for block in self.shape.blocks]

    def needed(self, columns: Columns) -> np.ndarray:
        """The high end of the band of bytes that the first and the last stage hold at least: their states, what
        backward needs of each micro-batch in flight, and what the layer or the loss at work holds beside it.
        """
        plan = self.layers.plan
        if any(plan.field(name) != "none" for name in OFFLOADS):
            return np.zeros((len(self.stack.pipelines), 1, 1))
        p = self.stack.stages
        work, loss = (self._wide(of_rows) for of_rows in (self.layers.work, self.layers.loss))
        shards_units = training_runtime(plan.runtime).shards_units
        # FSDP2's stages are fullest at other moments: what runs then is not what runs first
        in_pipeline = np.zeros(1) if shards_units else work
        first = self._of_stage(columns, self._first, 0, np.where(p == 1, np.maximum(work, loss), in_pipeline))
        if (p > 1).any() and not shards_units:
            last = self._of_stage(columns, self._last, p - 1, np.maximum(work, loss))
            first = np.maximum(first, np.where(p > 1, last, 0))
        return np.asarray(
            (first + self._wide(self.layers.overhead)) * self.layers.band * self.shape.known[:, None, None]
        )

    def _wide(self, of_rows: Any) -> np.ndarray:
        """Values of rows as an array of shape (1, rows, 1)."""
        return np.broadcast_to(of_rows, (self.stack.rows,))[None, :, None]

    def _of_stage(self, columns: Columns, stage: "_Held", rank: Any, work: np.ndarray) -> Any:
        """Bytes of one stage of each pipeline. `work`: what is held by what runs while all layers keep theirs."""
        v, m, p = self.stack.chunks, columns["num_microbatches"], self.stack.stages
        flying: Any = 0
        if self.is_plain:
            flying = microbatches_in_flight.evaluate(p=p, i=rank, m=m)
            if (v > 1).any():
                chunks_flying = interleaved_microbatches_in_flight.evaluate(
                    p=p, i=rank, m=m, v=v, n_turn=microbatches_per_round(m, p)
                )
                flying = np.where(v > 1, chunks_flying, flying)
        units = self._units(columns, stage, m > flying) + self._handed_on(columns)
        in_layers = stage.kept * flying + np.maximum(work, units)
        return self._states(columns, stage) + np.maximum(in_layers, self._gradients_made(columns, stage))

    @cached_property
    def _first(self) -> "_Held":
        return self._held(self.shape.first, True, self.stack.stages == 1)

    @cached_property
    def _last(self) -> "_Held":
        return self._held(self.shape.last, self.stack.stages == 1, True)

    def _held(self, counts: np.ndarray, has_table: Any, has_head: Any) -> "_Held":
        """What a stage of each pipeline holds, of layers in these numbers."""
        layers = self.layers
        routed = self._of_rows(counts, layers.routed)[:, :, None]
        inner = self._of_rows(counts, layers.held)[:, :, None] - routed
        ends = self._wide(layers.table) * has_table + self._wide(layers.after) * has_head
        return _Held(inner + ends, routed, inner, self._of_rows(counts, layers.kept)[:, :, None])

    def _states(self, columns: Columns, stage: _Held) -> Any:
        """Weights, gradients that stay, and the optimizer's states of a stage."""
        plan = self.layers.plan
        runtime, recipe = training_runtime(plan.runtime, plan.runtime_version), TRAINING_RECIPES[plan.precision]
        zero = self.stack.choices["zero_stage"]
        states = [*runtime.weights, *(runtime.gradients if runtime.gradients_persist else ())]
        states += runtime.masters if recipe.master_bytes else ()
        widths = [(width_of(state.copy, recipe), zero >= state.sharded_from) for state in states]
        if plan.optimizer == "adamw":  # the states of others depend on shapes
            held = optimizer(plan.optimizer).total_bytes(1, 1, update_bytes=recipe.update_bytes)
            widths.append((held, zero >= runtime.optimizer_sharded_from))
        return self._bytes(columns, stage, widths)

    def _units(self, columns: Columns, stage: _Held, goes_on: Any) -> Any:
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
            total = self._bytes(columns, layers, [(recipe.reduce_bytes, False)]) * ((self.stack.stages > 1) & goes_on)
        if self.stack.choices["zero_stage"] == 2 and not plan.kernels.float8_all_gather:
            total = total + self._bytes(columns, layers, [(recipe.compute_bytes, False)])
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

    def _gradients_made(self, columns: Columns, stage: _Held) -> Any:
        """All gradients, where backward makes them and the optimizer's step finds them."""
        plan = self.layers.plan
        runtime = training_runtime(plan.runtime, plan.runtime_version)
        if runtime.gradients_persist or plan.optimizer_in_backward:
            return 0
        recipe, zero = TRAINING_RECIPES[plan.precision], self.stack.choices["zero_stage"]
        widths = [(width_of(state.copy, recipe), zero >= state.sharded_from) for state in runtime.gradients]
        made = self._bytes(columns, stage, widths)
        accumulates = runtime.shards_units and recipe.reduce_bytes != recipe.compute_bytes
        return made * (self.stack.stages == 1) if accumulates else made

    def _bytes(self, columns: Columns, stage: _Held, widths: list[tuple[float, bool]]) -> Any:
        """Of the parameters of a stage: (bytes of each, whether it is sharded)."""
        whole = sum(width for width, sharded in widths if not sharded)
        shared = sum(width for width, sharded in widths if sharded)
        dense, routed = stage.dense, stage.routed
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
