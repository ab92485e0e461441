"""Bounds that cost next to nothing: bytes that a plan needs at least, and seconds that a step takes at least.

What one rank does with one layer is walked once for all pipelines, numbers of replicas and ZeRO stages: the same
layers, with the same exchanges inside of them, are in every one of these plans. All else is taken as nothing: table and
head, states that are gathered, buffers, what replicas send each other, the optimizer. So no plan is turned away that
the whole estimate would keep (tests/search/test_training_bounds.py).
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
from msgspec.structs import replace

from tonnage.estimate.bands import training_band
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.memory import Step
from tonnage.estimate.plan.pipeline_boxes import microbatches_per_round
from tonnage.estimate.step.communication import width_of
from tonnage.estimate.step.pipeline_layout import chunk_layers
from tonnage.estimate.step.rank import Shares, block_parameters, stages
from tonnage.estimate.step.stage import StageMemory
from tonnage.estimate.step_time.step import StepTime
from tonnage.formulas.memory import interleaved_microbatches_in_flight, microbatches_in_flight
from tonnage.formulas.pipeline import bubble_seconds
from tonnage.numerics.optimizers import optimizer
from tonnage.numerics.precisions import TRAINING_RECIPES
from tonnage.runtimes import training_runtime
from tonnage.search.training.pipelines import LAYOUTS, chunks_of, with_choices
from tonnage.search.training.space import Group, Space
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

    def of(self, group: Group, columns: Columns, left: np.ndarray) -> "Least | None":
        """Bounds of a group, some of whose plans are valid (`left`); None where nothing is known of it."""
        key = _key(group)
        if key not in self._known:
            self._known[key] = _layers(self.space, group, columns, left)
        layers = self._known[key]
        return None if layers is None else Least(self.space, group, columns, layers)

    def forget(self) -> None:
        """Let go of the layers that were walked: other blocks of columns come."""
        self._known.clear()

    def floor(self, group: Group) -> float | None:
        """Accelerator-seconds of a token that no plan of the group is below, whatever its pipeline; None where its
        layers were not walked yet.
        """
        layers = self._known.get(_key(group))
        if layers is None or layers.rows != group.rows:
            return None
        inner = group.inner
        ranks = inner["tensor_parallel_size"] * inner["context_parallel_size"]
        return float(np.min(layers.through * ranks / (inner["sequence_length"] * inner["micro_batch_size"])))


def _key(group: Group) -> tuple[Any, ...]:
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
        band = training_band(plan, space.largest)
        self.band = band.high if band else 1.0


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


class Least:
    """The bounds of one group: arrays of shape (rows, machines), or what broadcasts to it."""

    def __init__(self, space: Space, group: Group, columns: Columns, layers: _Layers):
        self.space, self.group, self.columns, self.layers = space, group, columns, layers
        plan, runtime = layers.plan, training_runtime(group.choices["runtime"], layers.plan.runtime_version)
        options = with_choices(space.options, group.names)
        self.is_plain = options.pipeline_schedule in PLAIN
        self.stages: tuple[
            Mapping[Any, int], ...
        ] = ()  # layers of each kind of stage, the first one first; none where a layout says them
        chunks = chunks_of(space.model, group.stages, group.chunks, options)
        if chunks is None and not any(getattr(options, name) for name in LAYOUTS):
            piped = replace(
                plan,
                pipeline_parallel_size=group.stages,
                virtual_pipeline_size=group.chunks,
                layout=PipelineLayout(),
            )
            chunks = chunk_layers(space.model, runtime, piped)
        if chunks is not None:
            built = stages(space.model, group.stages, chunks)
            self.stages = tuple(dict(layers) for layers in dict.fromkeys(stage.layers for stage in built))
        self.first = self.stages[0] if self.stages else {}

    def seconds_per_token(self) -> np.ndarray:
        """Seconds per token of a step at least: all micro-batches on the stage that takes longest, and what it
        waits while a pipeline fills and drains.
        """
        p, v, m = self.group.stages, self.group.chunks, self.columns["num_microbatches"]
        through = np.broadcast_to(self.layers.through, (self.group.rows,))[:, None]
        step = m * through / p
        if self.is_plain:
            slowest = np.maximum(through / p, self._slowest())
            step = m * slowest
            if v > 1:  # other numbers than whole rounds are played out, and may wait less
                step = np.where(m % p == 0, step + bubble_seconds.evaluate(tau=through, tau_step=slowest, v=v), step)
            step = np.maximum(step, through)  # a micro-batch passes all stages
        tokens = (
            self.columns["sequence_length"] * self.columns["micro_batch_size"] * self.columns["data_parallel_size"] * m
        )
        return np.asarray((step + self.layers.fixed) / tokens)

    def _slowest(self) -> Any:
        """Seconds of a micro-batch in the layers of the stage that has most to do: shape (rows, 1)."""
        times = [sum(count * self.layers.each[block] for block, count in layers.items()) for layers in self.stages]
        return np.broadcast_to(reduce(np.maximum, times, 0.0), (self.group.rows,))[:, None]

    def needed(self) -> np.ndarray | float:
        """The high end of the band of bytes that layers of the first stage keep: their states, and what backward
        needs of each micro-batch in flight.
        """
        plan = self.layers.plan
        if not self.first or any(plan.field(name) != "none" for name in OFFLOADS):
            return 0.0
        p, v, m = self.group.stages, self.group.chunks, self.columns["num_microbatches"]
        flying = 0
        if self.is_plain:
            flying = (
                microbatches_in_flight.evaluate(p=p, i=0, m=m)
                if v == 1
                else interleaved_microbatches_in_flight.evaluate(
                    p=p, i=0, m=m, v=v, n_turn=microbatches_per_round(m, p)
                )
            )
        kept_bytes = sum(
            count * np.broadcast_to(self.layers.kept[block], (self.group.rows,))[:, None]
            for block, count in self.first.items()
            if block in self.layers.kept
        )
        at_once = self._states() + np.maximum(
            kept_bytes * flying + self._handed_on() + self._units(), self._gradients_made()
        )
        return np.asarray(at_once * self.layers.band)

    def _states(self) -> Any:
        """Weights, gradients that stay, and the optimizer's states of the first stage's layers."""
        plan = self.layers.plan
        runtime, recipe = training_runtime(plan.runtime, plan.runtime_version), TRAINING_RECIPES[plan.precision]
        zero = self.group.choices["zero_stage"]
        states = [*runtime.weights, *(runtime.gradients if runtime.gradients_persist else ())]
        states += runtime.masters if recipe.master_bytes else ()
        widths = [(width_of(state.copy, recipe), zero >= state.sharded_from) for state in states]
        if plan.optimizer == "adamw":  # the states of others depend on shapes
            held = optimizer(plan.optimizer).total_bytes(1, 1, update_bytes=recipe.update_bytes)
            widths.append((held, zero >= runtime.optimizer_sharded_from))
        return self._bytes(widths)

    def _units(self) -> Any:
        """What FSDP2 holds of whole layers: under a pipeline gradients that it sums, and with ZeRO-2 units that stay
        gathered (estimate.frameworks.fsdp2_units).
        """
        plan, recipe = self.layers.plan, TRAINING_RECIPES[self.layers.plan.precision]
        if not training_runtime(plan.runtime).shards_units:
            return 0
        widths = [(recipe.reduce_bytes, False)] if self._accumulates else []
        if self.group.choices["zero_stage"] == 2 and not plan.kernels.float8_all_gather:
            widths.append((recipe.compute_bytes, False))
        return self._bytes(widths)

    @property
    def _accumulates(self) -> bool:
        runtime, recipe = training_runtime(self.layers.plan.runtime), TRAINING_RECIPES[self.layers.plan.precision]
        return runtime.shards_units and self.group.stages > 1 and recipe.reduce_bytes != recipe.compute_bytes

    def _handed_on(self) -> Any:
        """What the first stage of torch's pipelines receives gradients in: a buffer for every micro-batch
        (estimate.frameworks.fsdp2_units).
        """
        if not (training_runtime(self.layers.plan.runtime).shards_units and self.group.stages > 1):
            return 0
        columns, width = self.columns, TRAINING_RECIPES[self.layers.plan.precision].compute_bytes
        ranks = columns["context_parallel_size"] * columns["tensor_parallel_size"]
        tokens = columns["sequence_length"] * columns["micro_batch_size"] / ranks
        return columns["num_microbatches"] * tokens * self.space.model.hidden_size * width

    def _gradients_made(self) -> Any:
        """All gradients, where backward makes them and the optimizer's step finds them."""
        plan = self.layers.plan
        runtime = training_runtime(plan.runtime, plan.runtime_version)
        if runtime.gradients_persist or plan.optimizer_in_backward or self._accumulates:
            return 0
        recipe, zero = TRAINING_RECIPES[plan.precision], self.group.choices["zero_stage"]
        return self._bytes([(width_of(state.copy, recipe), zero >= state.sharded_from) for state in runtime.gradients])

    def _bytes(self, widths: list[tuple[float, bool]]) -> Any:
        """Of the parameters of the first stage's layers: (bytes of each, whether it is sharded)."""
        t, e, q = (
            self.columns[name]
            for name in ("tensor_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size")
        )
        plan = self.layers.plan
        dense = self.columns["data_parallel_size"] * self.columns["context_parallel_size"] / plan.replicate_size
        unsharded, shard = Shares(t, e, q), Shares(t, e, q, dense, np.maximum(dense * t / (e * q), 1))
        total: Any = 0
        for shares, is_sharded in ((unsharded, False), (shard, True)):
            width = sum(width for width, sharded in widths if sharded is is_sharded)
            if width:
                total = total + width * sum(
                    count * block_parameters(block, shares).value for block, count in self.first.items()
                )
        return total
