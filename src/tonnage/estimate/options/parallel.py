"""How a training run is spread over a cluster: the sizes of its groups of ranks, and what must divide what."""

from collections.abc import Mapping
from math import prod
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.checks import (
    check_experts,
    check_has_experts,
    check_tensor_parallel,
    expert_counts,
    shares_heads,
)
from tonnage.estimate.plan.nearest import divisors, near, near_sizes
from tonnage.estimate.plan.schedule import check_stages, default_chunks
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.pipeline_layout import takes_unequal_chunks
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, listed
from tonnage.kernel.units import counted
from tonnage.runtimes import TrainingRuntime, training_runtime, training_runtimes
from tonnage.spec import Cluster

OF_A_REPLICA = ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size")


def parallel_sizes(
    model: Model, cluster: Cluster, runtime: TrainingRuntime, length: int, o: TrainingOptions, q: Question
) -> dict[str, Any]:
    """The sizes of all groups; together they use the whole cluster. `length`: tokens of a sequence, which context
    ranks share.
    """
    world = cluster.size
    check_has_experts(model, o.expert_parallel_size, o.expert_tensor_parallel_size)
    if world > 1:  # of one accelerator the number is what is wrong, not its usual runtime
        _check_abilities(runtime, o)
    sizes: dict[str, Any] = {}
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "virtual_pipeline_size", "context_parallel_size"):
        sizes[name] = q.take(name, getattr(o, name), default_chunks(o) if name == "virtual_pipeline_size" else 1)
    used = prod(sizes[name] for name in OF_A_REPLICA)
    if world % used:
        raise InvalidPlan(_does_not_divide(model, world, sizes, length, o.data_parallel_size))
    _check_abilities(runtime, o)
    sizes["data_parallel_size"] = q.take(
        "data_parallel_size", o.data_parallel_size, world // used, "cluster", "uses all accelerators"
    )
    if sizes["data_parallel_size"] * used != world:
        raise InvalidPlan(
            Message(
                "data_parallel_size must be {world} to use the cluster's {world2}, as tensor_parallel_size x "
                "pipeline_parallel_size x context_parallel_size is {used}. Got {data_parallel_size}.",
                world=world // used,
                world2=counted(world, "accelerators"),
                used=used,
                data_parallel_size=sizes["data_parallel_size"],
            )
        )
    sizes["expert_parallel_size"] = q.take("expert_parallel_size", o.expert_parallel_size, 1)
    sizes["expert_tensor_parallel_size"] = _expert_tensor_size(model, sizes, o, q)
    return sizes


def _does_not_divide(model: Model, world: int, sizes: dict[str, int], length: int, data: int | None) -> str:
    """Of what is above 1: the sizes, and the nearest that divide the accelerators, the heads, the layers and the
    sequence as well.
    """
    asked = {name: sizes[name] for name in OF_A_REPLICA if sizes[name] > 1}

    def holds(some: Mapping[str, int]) -> bool:
        t, p, c = (some.get(name, 1) for name in OF_A_REPLICA)
        return world % (t * p * c) == 0 and shares_heads(model, t) and p <= model.num_layers and length % c == 0

    def with_data(some: Mapping[str, int]) -> bool:
        return holds(some) and prod(some.values()) * (data or 0) == world

    nearest = near_sizes(asked, divisors(world), with_data) or near_sizes(asked, divisors(world), holds)
    names, values = " x ".join(asked), " x ".join(map(str, asked.values()))
    return Message(
        "{names} must divide the cluster's {world}. Got {values}. Nearest: {nearest}.",
        names=names,
        world=counted(world, "accelerators"),
        values=values,
        nearest=nearest,
    )


def _expert_tensor_size(model: Model, sizes: dict[str, int], o: TrainingOptions, q: Question) -> int:
    default, why = 1, "experts stay whole under expert parallelism"
    if not expert_counts(model):
        why = "no experts"
    elif sizes["expert_parallel_size"] == 1:
        default, why = sizes["tensor_parallel_size"], "experts are cut like everything else"
    return q.take("expert_tensor_parallel_size", o.expert_tensor_parallel_size, default, "default", why)


def _check_abilities(runtime: TrainingRuntime, o: TrainingOptions) -> None:
    """Said before what divides what: of a kind that the runtime lacks no size is right."""
    for kind in ("tensor", "pipeline", "context", "expert"):
        name, ability = f"{kind}_parallel_size", "pipeline" if kind == "pipeline" else f"{kind}_parallel"
        size = getattr(o, name) or 1
        if size > 1 and not getattr(runtime, ability):
            have = [other for other in training_runtimes() if getattr(training_runtime(other), ability)]
            raise InvalidPlan(
                Message(
                    "runtime {runtime} has no {name}: it must be 1. Got {size}. Those that have it: {have}.",
                    runtime=runtime.name,
                    name=name,
                    size=size,
                    have=listed(have),
                )
            )


def check_parallel(model: Model, runtime: TrainingRuntime, sizes: dict[str, int], o: TrainingOptions) -> None:
    """What must divide layers, heads and experts."""
    t, p, v = sizes["tensor_parallel_size"], sizes["pipeline_parallel_size"], sizes["virtual_pipeline_size"]
    c, e, q = sizes["context_parallel_size"], sizes["expert_parallel_size"], sizes["expert_tensor_parallel_size"]
    world = t * p * c * sizes["data_parallel_size"]
    check_stages(p, o)
    check_tensor_parallel(model, t, divisors(world // (p * c)))
    check_experts(model, e, q, sizes["data_parallel_size"] * c * t)
    layers, room = model.num_layers, divisors(world // (t * c))
    if p > layers:
        raise InvalidPlan(
            Message(
                "pipeline_parallel_size must be from 1 to the {layers} of {model}. Got {p}. Nearest: {near}.",
                layers=counted(layers, "layers"),
                model=model.name,
                p=p,
                near=near(p, [n for n in room if n <= layers]),
            )
        )
    _check_ends(model, p, o)

    def in_chunks(p: int, v: int) -> bool:
        return v == 1 or (p > 1 and (layers % (p * v) == 0 or takes_unequal_chunks(runtime, layers, p * v, o)))

    if not in_chunks(p, v):
        hint = (
            " Or give pipeline_layout, as Megatron's --pipeline-model-parallel-layout."
            if "pipeline_layout" in runtime.options
            else ""
        )
        among = sorted({*divisors(layers), *room, v})
        nearest = near_sizes({"v": v, "p": p}, among, lambda some: some["p"] in room and in_chunks(**some))
        raise InvalidPlan(
            Message(
                "virtual_pipeline_size x pipeline_parallel_size must divide the {layers} of {model}, with "
                "more than one pipeline stage. Got {v} x {p}. Nearest: {nearest}.{hint}",
                layers=counted(layers, "layers"),
                model=model.name,
                v=v,
                p=p,
                nearest=nearest,
                hint=hint,
            )
        )


def _check_ends(model: Model, p: int, o: TrainingOptions) -> None:
    """The first and the last stage must leave the others a layer each."""
    given = {
        name: size for name in ("first_stage_layers", "last_stage_layers") if (size := getattr(o, name)) is not None
    }
    rest, others = model.num_layers - sum(given.values()), p - len(given)
    for name, size in given.items():
        if p == 1:
            raise NotApplicable(
                Message("{name} is of a pipeline: pipeline_parallel_size must be above 1. Got 1.", name=name),
                name,
                ("pipeline_parallel_size",),
            )
        if rest < others or (others == 0 and rest):
            most = max(size + rest - others, 1)
            raise InvalidPlan(
                Message(
                    "{name} must leave the other {others} of {p} a layer each of the {num_layers} of "
                    "{model}. Got {size}. Nearest: {most}.",
                    name=name,
                    others=others,
                    p=counted(p, "pipeline stages"),
                    num_layers=counted(model.num_layers, "layers"),
                    model=model.name,
                    size=size,
                    most=most,
                )
            )
