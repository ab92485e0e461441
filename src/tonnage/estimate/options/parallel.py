"""How a training run is spread over a cluster: the sizes of its groups of ranks, and what must divide what."""

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question, own_of
from tonnage.estimate.plan.rule import READ, Facts, check, check_has_experts, expert_counts
from tonnage.estimate.plan.schedule import Schedule, default_chunks, runtime_schedule, schedule_named
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import (
    ACCELERATORS,
    CHUNKS,
    EXPERTS,
    HEADS,
    LAYERS,
    OF_A_REPLICA,
    SCHEDULES,
    WHOLE_CLUSTER,
)
from tonnage.estimate.step.pipeline_layout import takes_unequal_chunks
from tonnage.kernel.errors import InvalidPlan, MissingDatum, NotApplicable
from tonnage.kernel.message import Message, joined, listed, option_name
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
    facts = facts_of(model, runtime, o, says_why=q.is_read)
    of_cluster = {"accelerators": world, "sequence_length": length}
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


def facts_of(model: Model, runtime: TrainingRuntime, o: TrainingOptions, *, says_why: bool = True) -> Facts:
    """What the rules of sizes read of a run of training, beside the sizes. `says_why`: somebody reads its errors."""
    unequal = partial(takes_unequal_chunks, runtime, model.num_layers, o=o)
    return Facts(model, {name: getattr(o, name) for name in READ}, runtime, unequal, says_why)


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


# ---- The schedule of a pipeline: as the user or the runtime says, checked.


def check_stages(p: int, o: TrainingOptions) -> None:
    """A schedule other than the usual one is of several stages: said before its chunks are blamed."""
    if p == 1 and o.pipeline_schedule and schedule_named(o.pipeline_schedule).name != "1f1b":
        raise NotApplicable(
            Message(
                "{@pipeline_schedule} {pipeline_schedule} needs {@pipeline_parallel_size} above 1. Got 1.",
                pipeline_schedule=o.pipeline_schedule,
            ),
            "pipeline_schedule",
            ("pipeline_parallel_size",),
        )


def pipeline_schedule(facts: Facts, sizes: Mapping[str, Any], o: TrainingOptions, q: Question) -> str:
    """The schedule of a plan, checked; it is noted where there is a pipeline. `sizes`: with num_microbatches."""
    runtime, p, v, wanted = (
        facts.runtime,
        sizes["pipeline_parallel_size"],
        sizes["virtual_pipeline_size"],
        o.pipeline_schedule,
    )
    if p == 1:
        return "1f1b"
    chosen = runtime_schedule(runtime, wanted, v)
    if chosen.name not in runtime.schedules:
        able = [name for name in training_runtimes() if chosen.name in training_runtime(name).schedules]
        hint = Message("Runtimes that have it: {able}.", able=listed(able)) if able else "No runtime here has it."
        raise InvalidPlan(
            "runtime {runtime} has no {@pipeline_schedule} {chosen}: it must be {schedules}. {hint}",
            runtime=runtime.name,
            chosen=chosen.name,
            schedules=joined(" or ", runtime.schedules),
            hint=hint,
        )
    least, most = chosen.chunks
    if not least <= v <= most:
        right = f"{least}" if least == most else Message("at least {least}", least=least)
        raise InvalidPlan(
            "{@virtual_pipeline_size} must be {right} with {@pipeline_schedule} {chosen}. Got {v}.",
            right=right,
            chosen=chosen.name,
            v=v,
        )
    if chosen.name == "dualpipe" and (p % 2 or p < 4):
        raise InvalidPlan(
            "{@pipeline_parallel_size} must be even and at least 4 with {@pipeline_schedule} {chosen}: a rank has a "
            "stage of each half. Got {p}. Nearest: {nearest}.",
            chosen=chosen.name,
            p=p,
            nearest=listed([str(n) for n in sorted({max(p - 1, 4), p + 1}) if n % 2 == 0], "or"),
        )
    check(facts, sizes, *SCHEDULES)
    _check_torch(chosen, runtime, o)
    q.put(
        "pipeline_schedule",
        chosen.name,
        "given" if wanted else "runtime",
        "" if wanted else own_of(runtime.name),
    )
    return chosen.name


def _check_torch(chosen: Schedule, runtime: TrainingRuntime, o: TrainingOptions) -> None:
    """What torch/distributed/pipelining/schedules.py refuses, and what nobody knows."""
    if chosen.splits and o.compile:
        raise InvalidPlan(
            "{@pipeline_schedule} {chosen} splits backward, which compiled modules do not do in "
            "PyTorch: {@compile} must be off.",
            chosen=chosen.name,
        )
    if chosen.chunks[0] > 1 and runtime.splits_chunks and o.method == "freeze":
        raise MissingDatum(
            "method freeze under {@pipeline_schedule} {chosen} of {runtime} is not estimated: the "
            "layers that train are in the midst of ranks.",
            chosen=chosen.name,
            runtime=runtime.name,
        )
    if chosen.splits and chosen.name != "dualpipe" and o.recompute not in (None, "none"):
        raise MissingDatum(
            "what layers keep between their two backward passes when they are recomputed is not "
            "known: with {@pipeline_schedule} {chosen} {@recompute} must be none. Got {recompute}.",
            chosen=chosen.name,
            recompute=o.recompute,
        )


# ---- Ranks that have more to do, or are slower, than the others: imbalance of experts, stragglers, power limits.
# Nothing of it unless it is said.

SLOWEST = 1000  # times


def uneven_ranks(
    model: Model, runtime: TrainingRuntime, sizes: dict[str, Any], o: TrainingOptions, q: Question
) -> dict[str, Any]:
    """The fields of a plan that say so."""
    return _imbalance(model, runtime, sizes["expert_parallel_size"], o, q) | _stragglers(o, q) | _reached(o, q)


def _imbalance(model: Model, runtime: TrainingRuntime, ranks: int, o: TrainingOptions, q: Question) -> dict[str, float]:
    """Tokens of the fullest expert rank over the mean: from balanced to all of them."""
    wanted = o.expert_imbalance
    lacks = {
        "runtime": "expert_imbalance" not in runtime.options,
        "model": not expert_counts(model),
        "expert_parallel_size": ranks == 1,
        "expert_capacity_factor": o.expert_capacity_factor is not None,
    }
    if any(lacks.values()):
        if wanted not in (None, 1):
            raise NotApplicable(
                (
                    Message(
                        "{@expert_imbalance} needs experts that several ranks of megatron share, without "
                        "{@expert_capacity_factor}: it must be 1. Got {said:g}.",
                        said=wanted,
                    )
                ),
                "expert_imbalance",
                tuple(name for name, is_lacking in lacks.items() if is_lacking)[:1],
            )
        return {}
    if wanted is not None and not 1 <= wanted <= ranks:
        raise InvalidPlan(
            "{@expert_imbalance} must be from 1 (balanced) to the {ranks} ranks that share the experts. Got {said:g}.",
            ranks=ranks,
            said=wanted,
        )
    why = "assumed: every rank's experts are sent equally many tokens"
    return {"expert_imbalance": q.take("expert_imbalance", wanted, 1, "default", why)}


def _stragglers(o: TrainingOptions, q: Question) -> dict[str, float]:
    slow, share = o.straggler_slowdown, o.straggler_share
    if slow is None:
        if share is not None:
            raise NotApplicable(
                Message(
                    "{@straggler_share} belongs to {@straggler_slowdown}, which is not said. Got {share:g}.",
                    share=share,
                ),
                "straggler_share",
                ("straggler_slowdown",),
            )
        return {}
    if not 1 <= slow <= SLOWEST:
        raise InvalidPlan(
            "{@straggler_slowdown} must be from 1 to {slowest:,}: how many times longer a slow node "
            "takes. Got {slow:g}.",
            slowest=SLOWEST,
            slow=slow,
        )
    if share is not None and not 0 <= share <= 1:
        raise InvalidPlan(
            "{@straggler_share} must be from 0 to 1: the share of nodes that are slow. Got {share:g}.",
            share=share,
        )
    why = "a slow node is there in any case"
    return {
        "straggler_slowdown": q.take("straggler_slowdown", slow),
        "straggler_share": q.take("straggler_share", share, 1, "default", why),
    }


def _reached(o: TrainingOptions, q: Question) -> dict[str, float]:
    """What large products reach on this very machine."""
    wanted = o.product_share
    if wanted is None:
        return {}
    if not 0 < wanted <= 1:
        raise InvalidPlan(
            "{@product_share} must be more than 0 and at most 1: a share of the 16-bit peak. Got {said:g}.",
            said=wanted,
        )
    return {"product_share": q.put("product_share", wanted, "given")}
