"""Many plans at once: columns of arrays in, bytes of each plan out, by the same walk as a single answer."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tonnage.architectures import Model
from tonnage.errors import InvalidPlan
from tonnage.estimate.training import training_memory
from tonnage.spec import Cluster, TrainingPlan

COLUMNS = (
    "sequence_length", "micro_batch_size", "num_microbatches", "tensor_parallel_size", "pipeline_parallel_size",
    "virtual_pipeline_size", "context_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size", "data_parallel_size",
)  # fmt: skip

LAYER_SIZES = ("tensor_parallel_size", "context_parallel_size")  # with more than one rank layers hold other tensors
CHUNK = 8192  # plans walked at once: their arrays stay in the cache of a core


def needed_bytes(model: Model, columns: Mapping[str, Any], cluster: Cluster | None = None, **names: Any) -> np.ndarray:
    """Peak bytes of the fullest rank of each plan: shape (plans,), float64.

    `columns` has sizes, each a number or an array of shape (plans,); `names` the choices that hold for all plans
    (recompute, zero_stage, optimizer, ...). Plans are taken as valid: check them before (estimate.plans).
    """
    for name in columns:
        if name not in COLUMNS:
            raise InvalidPlan(f"a column of plans is one of {', '.join(COLUMNS)}. Got {name!r}.")
    arrays = np.broadcast_arrays(*(np.asarray(values, dtype=np.float64) for values in columns.values()))
    plans = dict(zip(columns, arrays, strict=True))
    stages = plans.pop("pipeline_parallel_size", np.ones(1)).astype(np.int64)
    chunks = plans.pop("virtual_pipeline_size", np.ones(1)).astype(np.int64)
    stages, chunks, *rest = np.broadcast_arrays(stages, chunks, *plans.values())
    plans = dict(zip(plans, rest, strict=True))
    needed = np.empty(stages.shape)
    # A pipeline's stages are a loop, and a layer that ranks share is another layer, so plans alike in that are walked together;
    # integers stay below 2**53.
    alike = [stages, chunks, *(plans[name] > 1 for name in LAYER_SIZES if name in plans)]
    shapes, groups = np.unique(np.stack(alike), axis=1, return_inverse=True)
    for number, shape in enumerate(shapes.T):
        chosen = np.flatnonzero(groups.reshape(-1) == number)
        for part in np.array_split(chosen, -(-len(chosen) // CHUNK)):
            sizes: dict[str, Any] = {name: values[part] for name, values in plans.items()}
            plan = TrainingPlan(
                **sizes, pipeline_parallel_size=int(shape[0]), virtual_pipeline_size=int(shape[1]), **names
            )
            needed[part] = training_memory(model, plan, cluster).needed
    return needed
