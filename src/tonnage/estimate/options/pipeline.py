"""The schedule of a pipeline: as the user or the runtime says, checked."""

from collections.abc import Mapping
from typing import Any

from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.rule import Facts, check
from tonnage.estimate.plan.schedule import Schedule, schedule_named, schedule_with_chunks
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import SCHEDULES
from tonnage.kernel.errors import InvalidPlan, MissingDatum, NotApplicable
from tonnage.kernel.message import Message, joined, listed
from tonnage.runtimes import TrainingRuntime, training_runtime, training_runtimes


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
    chosen = schedule_with_chunks(wanted, v)
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
    check(facts, sizes, *SCHEDULES)
    _check_torch(chosen, runtime, o)
    q.put(
        "pipeline_schedule",
        chosen.name,
        "given" if wanted else "runtime",
        "" if wanted else Message("{runtime}'s own", runtime=runtime.name),
    )
    return chosen.name


def _check_torch(chosen: Schedule, runtime: TrainingRuntime, o: TrainingOptions) -> None:
    """What torch/distributed/pipelining/schedules.py refuses, and what nobody knows."""
    if chosen.splits and o.compile:
        raise InvalidPlan(
            "{@pipeline_schedule} {chosen} splits backward, which compiled modules do not do in "
            "PyTorch: compile must be off.",
            chosen=chosen.name,
        )
    if chosen.chunks[0] > 1 and runtime.splits_chunks and o.method == "freeze":
        raise MissingDatum(
            "method freeze under {@pipeline_schedule} {chosen} of {runtime} is not estimated: the "
            "layers that train are in the midst of ranks.",
            chosen=chosen.name,
            runtime=runtime.name,
        )
    if chosen.splits and o.recompute not in (None, "none"):
        raise MissingDatum(
            "what layers keep between their two backward passes when they are recomputed is not "
            "known: with {@pipeline_schedule} {chosen} recompute must be none. Got {recompute}.",
            chosen=chosen.name,
            recompute=o.recompute,
        )
