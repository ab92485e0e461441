"""Which plans of an array can be: what must divide what, as arrays; `tonnage plan` holds its plans to the same
(search.training.validity). What else a runtime asks of its sizes is asked by estimate.options.plans.
"""

from collections.abc import Mapping

import numpy as np

from tonnage.architectures import Model
from tonnage.runtimes import TrainingRuntime
from tonnage.search.dividing import EVEN_PARTS, experts_divide, heads_divide, microbatch_masks, sequence_parts
from tonnage.search.removed import Tally
from tonnage.spec import Cluster

Columns = Mapping[str, np.ndarray]


def valid(
    model: Model,
    cluster: Cluster,
    runtime: TrainingRuntime,
    sequence_parallel: bool | None,
    schedule: str | None,
    columns: Columns,
    tally: Tally,
) -> np.ndarray:
    """A mask of shape (plans,): the plans whose sizes belong together. `columns` are complete (complete_columns),
    whole numbers, all of one shape; `schedule`: of pipelines, None for the runtime's own; `tally` counts what each
    constraint took away.
    """
    world, (t, p, c, d, e, q) = (
        cluster.size,
        (
            columns[f"{name}_parallel_size"]
            for name in ("tensor", "pipeline", "context", "data", "expert", "expert_tensor")
        ),
    )
    left = np.ones(t.shape, dtype=bool)
    left = tally.hold(
        "tensor x pipeline x context x data parallel sizes are the accelerators of the cluster",
        left,
        t * p * c * d == world,
    )
    left = tally.hold("there is a layer for each pipeline stage", left, p <= model.num_layers)
    left = tally.hold("tensor_parallel_size divides the heads of the model", left, heads_divide(model, t))
    left = tally.hold(
        "experts are dealt out evenly, to the ranks of a stage", left, experts_divide(model, e, q, d * c * t)
    )
    length = columns["sequence_length"]
    left = tally.hold("context_parallel_size divides sequence_length", left, length % c == 0)
    left = tally.hold(EVEN_PARTS, left, length % sequence_parts(t, c, sequence_parallel) == 0)
    if "global_batch_size" in columns:
        batch = columns["micro_batch_size"] * d
        even = columns["global_batch_size"] % np.maximum(batch, 1) == 0
        left = tally.hold(
            "global_batch_size is a multiple of micro_batch_size x data_parallel_size", left, even & (batch > 0)
        )
    chunks = columns["virtual_pipeline_size"]
    for sentence, holds in microbatch_masks(runtime, schedule, p, chunks, columns["num_microbatches"]):
        left = tally.hold(sentence, left, holds)
    return left
