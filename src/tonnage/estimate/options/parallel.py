"""How a training run is spread over a cluster: the sizes of its groups of ranks, and what must divide what."""

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.pipeline import check_stages
from tonnage.estimate.plan.checks import check_has_experts, expert_counts
from tonnage.estimate.plan.rule import READ, Facts, check
from tonnage.estimate.plan.schedule import default_chunks
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import ACCELERATORS, CHUNKS, EXPERTS, HEADS, LAYERS, OF_A_REPLICA, WHOLE_CLUSTER
from tonnage.estimate.step.pipeline_layout import takes_unequal_chunks
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, listed, option_name
from tonnage.kernel.units import counted
from tonnage.runtimes import TrainingRuntime, training_runtime, training_runtimes
from tonnage.spec import Cluster


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
    facts, of_cluster = facts_of(model, runtime, o), {"accelerators": world, "sequence_length": length}
    check(facts, sizes | of_cluster, ACCELERATORS)
    _check_abilities(runtime, o)
    sizes["data_parallel_size"] = q.take(
        "data_parallel_size",
        o.data_parallel_size,
        world // prod(sizes[name] for name in OF_A_REPLICA),
        "cluster",
        "uses all accelerators",
    )
    check(facts, sizes | of_cluster, WHOLE_CLUSTER)
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


def _check_abilities(runtime: TrainingRuntime, o: TrainingOptions) -> None:
    """Said before what divides what: of a kind that the runtime lacks no size is right."""
    for kind in ("tensor", "pipeline", "context", "expert"):
        name, ability = f"{kind}_parallel_size", "pipeline" if kind == "pipeline" else f"{kind}_parallel"
        size = getattr(o, name) or 1
        if size > 1 and not getattr(runtime, ability):
            have = [other for other in training_runtimes() if getattr(training_runtime(other), ability)]
            raise InvalidPlan(
                "runtime {runtime} has no {name}: it must be 1. Got {size}. Those that have it: {have}.",
                runtime=runtime.name,
                name=option_name(name),
                size=size,
                have=listed(have),
            )


def check_parallel(facts: Facts, sizes: Mapping[str, Any], o: TrainingOptions) -> None:
    """What must divide layers, heads and experts."""
    p = sizes["pipeline_parallel_size"]
    check_stages(p, o)
    check(facts, sizes, HEADS, EXPERTS, LAYERS)
    _check_ends(facts.model, p, o)
    check(facts, sizes, CHUNKS)


def facts_of(model: Model, runtime: TrainingRuntime, o: TrainingOptions) -> Facts:
    """What the rules of sizes read of a run of training, beside the sizes."""
    unequal = partial(takes_unequal_chunks, runtime, model.num_layers, o=o)
    return Facts(model, {name: getattr(o, name) for name in READ}, runtime, unequal)


def _check_ends(model: Model, p: int, o: TrainingOptions) -> None:
    """The first and the last stage must leave the others a layer each."""
    ends = {
        name: size for name in ("first_stage_layers", "last_stage_layers") if (size := getattr(o, name)) is not None
    }
    rest, others = model.num_layers - sum(ends.values()), p - len(ends)
    for name, size in ends.items():
        if p == 1:
            raise NotApplicable(
                Message(
                    "{name} is of a pipeline: {@pipeline_parallel_size} must be above 1. Got 1.", name=option_name(name)
                ),
                name,
                ("pipeline_parallel_size",),
            )
        if rest < others or (others == 0 and rest):
            most = max(size + rest - others, 1)
            raise InvalidPlan(
                "{name} must leave the other {others} of {p} a layer each of the {num_layers} of "
                "{model}. Got {size}. Nearest: {most}.",
                name=option_name(name),
                others=others,
                p=counted(p, "pipeline stages"),
                num_layers=counted(model.num_layers, "layers"),
                model=model.name,
                size=size,
                most=most,
            )
