"""Many plans at once: columns of arrays in, bytes of each plan out, by the same walk as a single answer."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tonnage.architectures import Model
from tonnage.estimate.frameworks.base import framework_of
from tonnage.estimate.layers.layers import window_of
from tonnage.estimate.memory import training_memory
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import listed
from tonnage.ops import MoE
from tonnage.runtimes import training_runtime
from tonnage.spec import Cluster, TrainingPlan

COLUMNS = (
    "sequence_length",
    "micro_batch_size",
    "num_microbatches",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "virtual_pipeline_size",
    "context_parallel_size",
    "expert_parallel_size",
    "expert_tensor_parallel_size",
    "data_parallel_size",
)

# Whether there is more than one such rank decides what a layer keeps.
SPREAD = ("tensor_parallel_size", "context_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size")
CHUNK = 8192  # plans walked at once: their arrays stay in the cache of a core


def needed_bytes(model: Model, columns: Mapping[str, Any], cluster: Cluster | None = None, **names: Any) -> np.ndarray:
    """Peak bytes of the fullest GPU of each plan: shape (plans,), float64.

    `columns` has sizes, each a number or an array of shape (plans,); `names` the choices that hold for all plans
    (recompute, zero_stage, optimizer, ...). Plans are taken as valid: check them before (estimate.options.plans).
    """
    needed = np.empty(0)
    for part, plan, count in _walked(model, columns, names):
        needed = needed if len(needed) else np.empty(count)
        needed[part] = training_memory(model, plan, cluster).needed
    return needed


def bytes_and_seconds(
    model: Model, columns: Mapping[str, Any], cluster: Cluster, **names: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Peak bytes of the fullest GPU, and seconds of a step, of each plan: two of shape (plans,), float64; arguments as
    above.

    MissingDatum where no time of such plans is known (estimate.step_time.time).
    """
    needed = seconds = np.empty(0)
    for part, plan, count in _walked(model, columns, names):
        if not len(needed):
            needed, seconds = np.empty(count), np.empty(count)
        made = training_memory(model, plan, cluster)
        needed[part] = made.needed
        seconds[part] = Timing(model, plan, cluster, made.step).seconds
    return needed, seconds


def _walked(
    model: Model, columns: Mapping[str, Any], names: Mapping[str, Any]
) -> Iterator[tuple[np.ndarray, TrainingPlan, int]]:
    """Which plans, as one plan of arrays, and how many there are in all."""
    for name in columns:
        if name not in COLUMNS:
            raise InvalidPlan(
                "a column of plans is one of {columns}. Got {name!r}.", columns=listed(COLUMNS), name=name
            )
    arrays = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in columns.values()))
    plans = dict(zip(columns, arrays, strict=True))
    ones: dict[str, Any] = dict.fromkeys(COLUMNS, 1)
    same = together(model, TrainingPlan.of_fields(**ones, **names), plans)
    stages, chunks = (
        plans.pop(name, np.ones(arrays[0].shape if arrays else 1)).astype(np.int64)
        for name in ("pipeline_parallel_size", "virtual_pipeline_size")
    )
    # A pipeline's stages are a loop, and some sizes decide how layers are written: plans that agree in these are walked
    # together.
    keys = (same * (int(stages.max()) + 1) + stages) * (int(chunks.max()) + 1) + chunks
    for key in np.unique(keys):
        chosen = np.flatnonzero(keys == key)
        for part in np.array_split(chosen, -(-len(chosen) // CHUNK)):
            sizes: dict[str, Any] = {name: shared(values[part]) for name, values in plans.items()}
            plan = TrainingPlan.of_fields(
                **sizes,
                pipeline_parallel_size=int(stages[chosen[0]]),
                virtual_pipeline_size=int(chunks[chosen[0]]),
                **names,
            )
            yield part, plan, stages.size


def shared(sizes: np.ndarray) -> np.ndarray | int:
    """Sizes of plans that are walked together; one number where all of them have it: what it alone decides is then
    computed once, and not for each of them.
    """
    first = sizes.flat[0]
    return int(first) if (sizes == first).all() else sizes


def together(model: Model, plan: TrainingPlan, plans: Mapping[str, np.ndarray]) -> np.ndarray:
    """A number that plans share which can be walked together: their layers and their loss are written alike.

    `plan`: one of them, for what is no size.
    """
    keys = alike(model, plans)
    framework = framework_of(training_runtime(plan.runtime, plan.runtime_version))
    for name in framework.sizes_of_loss(plan):
        if name in plans:
            sizes, numbers = np.unique(plans[name], return_inverse=True)
            keys = keys * len(sizes) + numbers.reshape(keys.shape)
    return keys


def alike(model: Model, plans: Mapping[str, np.ndarray]) -> np.ndarray:
    """A number that plans share which write their layers alike: is there more than one rank of a kind, is a window
    shorter?
    """
    facts = [plans[name] > 1 for name in SPREAD if name in plans]
    experts = {op.num_experts for block in model.decoder.blocks for op in block.ops if isinstance(op, MoE)}
    if "expert_parallel_size" in plans:
        facts += [plans["expert_parallel_size"] < count for count in experts]
    windows = {window for block in model.decoder.blocks if (window := window_of(block)) is not None}
    if "sequence_length" in plans:
        facts += [plans["sequence_length"] >= window for window in windows]
    shape = next(iter(plans.values())).shape if plans else (1,)
    made = np.zeros(shape, dtype=np.int64)
    for fact in facts:
        made = 2 * made + fact
    return made
