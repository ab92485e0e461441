"""How a training run is spread over a cluster: the sizes of its groups of ranks, and what must divide what."""

from typing import Any

from tonnage.architectures import Model
from tonnage.errors import InvalidPlan
from tonnage.estimate._checks import check_experts, check_tensor_parallel, expert_counts, near_divisors
from tonnage.estimate._pipeline_layout import takes_unequal_chunks
from tonnage.estimate._question import Question
from tonnage.estimate._schedule import check_stages, default_chunks
from tonnage.estimate.training_options import TrainingOptions
from tonnage.runtimes import TRAINING, TrainingRuntime, training_runtime
from tonnage.spec import Cluster
from tonnage.units import counted


def parallel_sizes(model: Model, cluster: Cluster, o: TrainingOptions, q: Question) -> dict[str, Any]:
    """The sizes of all groups; together they use the whole cluster."""
    world = cluster.size
    sizes: dict[str, Any] = {}
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "virtual_pipeline_size", "context_parallel_size"):
        sizes[name] = q.take(name, getattr(o, name), default_chunks(o) if name == "virtual_pipeline_size" else 1)
    used = sizes["tensor_parallel_size"] * sizes["pipeline_parallel_size"] * sizes["context_parallel_size"]
    if world % used:
        raise InvalidPlan(
            f"tensor x pipeline x context parallel sizes must divide the cluster's {counted(world, 'accelerators')}. "
            f"Got {sizes['tensor_parallel_size']} x {sizes['pipeline_parallel_size']} x {sizes['context_parallel_size']} = {used}. "
            f"Nearest: {near_divisors(world, used)}."
        )
    sizes["data_parallel_size"] = q.take(
        "data_parallel_size", o.data_parallel_size, world // used, "cluster", "uses all accelerators"
    )
    if sizes["data_parallel_size"] * used != world:
        raise InvalidPlan(
            f"data_parallel_size must be {world // used} to use the cluster's {counted(world, 'accelerators')} with tensor x pipeline x "
            f"context = {used}. Got {sizes['data_parallel_size']}."
        )
    sizes["expert_parallel_size"] = q.take("expert_parallel_size", o.expert_parallel_size, 1)
    sizes["expert_tensor_parallel_size"] = _expert_tensor_size(model, sizes, o, q)
    return sizes


def _expert_tensor_size(model: Model, sizes: dict[str, int], o: TrainingOptions, q: Question) -> int:
    default, why = 1, "experts stay whole under expert parallelism"
    if not expert_counts(model):
        why = "no experts"
    elif sizes["expert_parallel_size"] == 1:
        default, why = sizes["tensor_parallel_size"], "experts are cut like everything else"
    return q.take("expert_tensor_parallel_size", o.expert_tensor_parallel_size, default, "default", why)


def check_parallel(model: Model, runtime: TrainingRuntime, sizes: dict[str, int], o: TrainingOptions) -> None:
    """What the runtime has, and what must divide layers, heads and experts."""
    t, p, v = sizes["tensor_parallel_size"], sizes["pipeline_parallel_size"], sizes["virtual_pipeline_size"]
    c, e, q = sizes["context_parallel_size"], sizes["expert_parallel_size"], sizes["expert_tensor_parallel_size"]
    abilities = (("tensor_parallel_size", t, "tensor_parallel"), ("pipeline_parallel_size", p, "pipeline"),
                 ("context_parallel_size", c, "context_parallel"), ("expert_parallel_size", e, "expert_parallel"))  # fmt: skip
    for name, size, ability in abilities:
        if size > 1 and not getattr(runtime, ability):
            have = [other for other in TRAINING if getattr(training_runtime(other), ability)]
            raise InvalidPlan(
                f"runtime {runtime.name} has no {name}: it must be 1. Got {size}. Those that have it: {', '.join(have)}."
            )
    check_stages(p, o)
    check_tensor_parallel(model, t)
    check_experts(model, e, q, sizes["data_parallel_size"] * c * t)
    layers = model.num_layers
    if p > layers:
        raise InvalidPlan(
            f"pipeline_parallel_size must be from 1 to the {counted(layers, 'layers')} of {model.name}. Got {p}."
        )
    _check_ends(model, p, o)
    if v > 1 and (p == 1 or (layers % (p * v) and not takes_unequal_chunks(runtime, layers, p * v, o))):
        hint = (
            " Or give pipeline_layout, as Megatron's --pipeline-model-parallel-layout."
            if runtime.name == "megatron"
            else ""
        )
        raise InvalidPlan(
            f"virtual_pipeline_size x pipeline_parallel_size must divide the {counted(layers, 'layers')} of {model.name}, with more than one "
            f"pipeline stage. Got {v} x {p}.{hint}"
        )


def _check_ends(model: Model, p: int, o: TrainingOptions) -> None:
    """The first and the last stage must leave the others a layer each."""
    given = {
        name: size for name in ("first_stage_layers", "last_stage_layers") if (size := getattr(o, name)) is not None
    }
    rest, others = model.num_layers - sum(given.values()), p - len(given)
    for name, size in given.items():
        if p == 1 or rest < others or (others == 0 and rest):
            raise InvalidPlan(
                f"{name} must leave the other {others} of {counted(p, 'pipeline stages')} a layer each of the {counted(model.num_layers, 'layers')} "
                f"of {model.name}. Got {size}."
            )
