"""What a run is, by what the error of its estimate depends on: machine, program, model, precision, and sizes."""

from collections.abc import Mapping
from functools import cache
from math import log2
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.kernel.formula import SCALARS, Number
from tonnage.spec import Cluster, Load, ServingPlan, TrainingPlan

#: Quantities that are corrected, by the verb that they are of.
TRAINING = ("step_time", "training_memory")
SERVING = ("ttft", "tpot", "request_time")
RECOMPUTED = {"none": 0.0, "selective": 0.5, "selective-op": 0.5, "full": 2.0}
LEAST = 1e-9


class Case(Struct, frozen=True, kw_only=True, eq=False):
    """A run, or a question. `sizes`: logarithms to base 2 of what can be counted, in a fixed order for each verb, the
    parameters of the model last; of plans they may be arrays.
    """

    accelerator: str
    runtime: str
    release: str
    model: str
    precision: str
    sizes: tuple[Number, ...]


class Compared(Struct, frozen=True, kw_only=True):
    """A quantity of a run that was kept. `error`: natural logarithm of measured over estimated."""

    quantity: str
    error: float
    case: Case


def training_case(model: Model, plan: TrainingPlan, cluster: Cluster) -> Case:
    """A training run, for `step_time` and `training_memory`."""
    return Case(
        accelerator=cluster.accelerator.name,
        runtime=plan.runtime,
        release=plan.runtime_version,
        model=model.name,
        precision=_joined(plan.precision, plan.tuning.method, plan.tuning.base_weights, plan.kernels.float8),
        sizes=(
            _log(plan.world_size),
            _log(plan.tensor_parallel_size),
            _log(plan.pipeline_parallel_size),
            _log(plan.context_parallel_size),
            _log(plan.expert_parallel_size),
            _log(plan.micro_batch_size),
            _log(plan.num_microbatches),
            _log(plan.sequence_length),
            RECOMPUTED.get(plan.recompute, 1.0),
            plan.zero_stage / 2,
            _log(_parameters(model)),
        ),
    )


def serving_case(model: Model, plan: ServingPlan, cluster: Cluster, load: Load) -> Case:
    """A served model under a load, for `ttft`, `tpot` and `request_time`."""
    users = load.concurrency if load.concurrency is not None else plan.concurrency
    return Case(
        accelerator=cluster.accelerator.name,
        runtime=plan.engine,
        release=plan.engine_version,
        model=model.name,
        precision=_joined(plan.weights, plan.kv_cache),
        sizes=(
            _log(users),
            _log(load.input_tokens),
            _log(load.output_tokens),
            _log(plan.tensor_parallel_size),
            _log(plan.pipeline_parallel_size),
            _log(plan.expert_parallel_size),
            _log(plan.attention_data_parallel_size),
            _log(_parameters(model)),
        ),
    )


def case_of(fields: Mapping[str, Any]) -> Case:
    """A case as it was stored."""
    return Case(**{**fields, "sizes": tuple(fields["sizes"])})


@cache
def _parameters(model: Model) -> int:
    return model.num_parameters()


def _joined(*names: Any) -> str:
    return " ".join(str(name) for name in names if name not in (None, "", "none"))


def _log(value: Number) -> Number:
    if type(value) in SCALARS:
        return log2(max(float(value), LEAST))
    import numpy as np

    return np.log2(np.maximum(value, LEAST))
