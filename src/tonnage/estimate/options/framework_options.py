"""Options that only some frameworks have: compilation, float8, replicated shards, the allocator; each refused where
it means nothing.
"""

from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.frameworks.base import framework_of
from tonnage.estimate.frameworks.plan_request import PlanRequest
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.parallel import facts_of
from tonnage.estimate.plan.rule import Facts, check
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import REPLICAS
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, joined, listed, option_name
from tonnage.kernel.registry import unknown
from tonnage.runtimes import TrainingRuntime, runtimes_with, training_runtime, training_runtimes
from tonnage.runtimes.parts.base import OF_SHARDING, OF_STEP

# Switch -> the options that decide whether a run can have it.
OWNERS: dict[str, tuple[str, ...]] = {
    "compile": ("runtime", "model_code"),
    "float8_all_gather": ("runtime", "float8"),
    "liger": ("runtime",),
    "async_tensor_parallel": ("runtime", "model_code", "compile", "tensor_parallel_size"),
    "optimizer_in_backward": ("runtime",),
    "keep_outputs": ("runtime",),
}


def own_options(request: PlanRequest) -> dict[str, Any]:
    """The fields of a plan that only some runtimes know, of the layers and their parallelism."""
    runtime, o = request.runtime, request.options
    for name in OF_STEP:
        if getattr(o, name) is not None and name not in runtime.options:
            raise NotApplicable(
                (
                    Message(
                        "runtime {runtime} has no {name}: leave it out. {runtimes_with} has it. Got {value}.",
                        runtime=runtime.name,
                        name=option_name(name),
                        runtimes_with=runtimes_with(name),
                        value=getattr(o, name),
                    )
                ),
                name,
                ("runtime",),
            )
    return {"runtime_version": o.runtime_version or ""} | framework_of(runtime).options(request)


def own_sharding_options(request: PlanRequest) -> dict[str, Any]:
    """The fields of a plan that only some runtimes know, of how states are sharded."""
    runtime, o = request.runtime, request.options
    for name in OF_SHARDING:
        if getattr(o, name) is not None and name not in runtime.options:
            raise NotApplicable(
                Message(
                    "{name} is a setting of {runtimes_with}: leave it out with runtime {runtime}. Got {value}.",
                    name=option_name(name),
                    runtimes_with=runtimes_with(name),
                    runtime=runtime.name,
                    value=getattr(o, name),
                ),
                name,
                ("runtime",),
            )
    return framework_of(runtime).sharding_options(request)


def framework_options(
    model: Model, runtime: TrainingRuntime, sizes: dict[str, Any], model_code: str, o: TrainingOptions, q: Question
) -> dict[str, Any]:
    """The fields of a plan that a framework's own options decide; nothing is noted of options that the runtime does
    not have.
    """
    newest = training_runtime(runtime.name)
    fields: dict[str, Any] = {}
    if newest.older:  # the newest has no name: what is said of it holds tomorrow too
        fields["runtime_version"] = next((name for name, version in newest.older.items() if version is runtime), "")
    able = runtime.compiles and model_code == runtime.model_codes[0]
    fields["compile"] = _switch("compile", able, o.compile, "torch.compile", "compiles", runtime, q)
    fields["float8"] = _float8(runtime, o, q)
    fields["float8_all_gather"] = _switch(
        "float8_all_gather", fields["float8"] == "tensorwise", o.float8_all_gather, "float8 tensorwise", "", runtime, q
    )
    parallel = able and bool(fields["compile"]) and sizes["tensor_parallel_size"] > 1
    fields["async_tensor_parallel"] = _switch(
        "async_tensor_parallel",
        parallel,
        o.async_tensor_parallel,
        "compile and more than one tensor rank",
        "",
        runtime,
        q,
    )
    fields["optimizer_in_backward"] = _switch(
        "optimizer_in_backward",
        runtime.steps_in_backward,
        o.optimizer_in_backward,
        "an optimizer that steps in backward",
        "steps_in_backward",
        runtime,
        q,
    )
    fields["liger"] = _liger(model, runtime, o, q)
    fields["packing"] = _packing(runtime, sizes, model_code, o, q)
    if o.keep_outputs is not None:  # not noted, as with Liger
        fields["keep_outputs"] = _switch(
            "keep_outputs",
            runtime.keeps_outputs,
            o.keep_outputs,
            "a training loop of your own",
            "keeps_outputs",
            runtime,
            q,
        )
    fields["replicate_size"] = _replicas(facts_of(model, runtime, o), sizes, o, q)
    fields["expandable_segments"] = _expandable(runtime, o, q)
    return fields


def _switch(
    name: str, able: bool, wanted: bool | None, needs: str, ability: str, runtime: TrainingRuntime, q: Question
) -> bool:
    """Something that is on or off; it is an error to ask for it where it does not exist."""
    if not able:
        if wanted:
            others = [
                name_of_other
                for name_of_other in training_runtimes()
                if ability and getattr(training_runtime(name_of_other), ability)
            ]
            hint = (
                Message(" Runtimes that have it: {others}.", others=listed(others))
                if others and runtime.name not in others
                else ""
            )
            raise NotApplicable(
                Message(
                    "{name} needs {needs}, which this run on {runtime} does not have: it must be off.{hint}",
                    name=option_name(name),
                    needs=needs,
                    runtime=runtime.name,
                    hint=hint,
                ),
                name,
                OWNERS[name],
            )
        return False
    return bool(q.take(name, wanted, False, "runtime", Message("{runtime}'s own", runtime=runtime.name)))


def _liger(model: Model, runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> bool:
    if o.liger is None:  # not noted, so that moves to runtimes without it leave nothing unsaid
        return False
    kind = str(model.config.get("model_type", ""))
    if o.liger and runtime.liger and kind not in runtime.liger:
        raise NotApplicable(
            (
                Message(
                    "Liger Kernel patches {liger}: liger must be off with a model of type {kind}.",
                    liger=listed(runtime.liger),
                    kind=kind or "unknown",
                )
            ),
            "liger",
            ("model", "runtime"),
        )
    return _switch("liger", kind in runtime.liger, o.liger, "kernels of Liger", "liger", runtime, q)


def _packing(runtime: TrainingRuntime, sizes: dict[str, Any], model_code: str, o: TrainingOptions, q: Question) -> bool:
    """Known of two authors' layers: what keeps sequences apart is theirs, whatever the runtime."""
    if o.packing is None:  # not noted, as with Liger
        return False
    if o.packing and model_code not in runtime.packs:
        every = [training_runtime(other) for other in training_runtimes()]
        known = dict.fromkeys(code for other in every for code in other.packs)
        able = [other.name for other in every if set(other.model_codes) & set(other.packs)]
        raise InvalidPlan(  # packing decides what a step trains on: a plan without it is no rival of one with it
            "{@packing} is known of the code of {known}, on runtimes {able}: it must be off with "
            "that of {model_code} on {runtime}.",
            known=joined(" and ", known),
            able=listed(able),
            model_code=model_code,
            runtime=runtime.name,
        )
    if o.packing and o.objective not in (None, "sft"):
        raise NotApplicable(
            Message(
                "{@packing} is of objective sft, the next token of texts. Got it with {objective}.",
                objective=o.objective,
            ),
            "packing",
            ("objective",),
        )
    if o.packing and sizes["context_parallel_size"] > 1:  # TRL, sft_trainer.py: the mask would be dropped
        raise InvalidPlan(
            "packing needs {@context_parallel_size} 1. Got {context_parallel_size}.",
            context_parallel_size=sizes["context_parallel_size"],
        )
    return bool(q.take("packing", o.packing, False, "default", "one sequence a row"))


def _float8(runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> str:
    if len(runtime.float8) == 1:
        if o.float8 not in (None, "none"):
            others = [other for other in training_runtimes() if len(training_runtime(other).float8) > 1]
            raise NotApplicable(
                (
                    Message(
                        "{@float8} is an option of {others}: it must be none with runtime {runtime}. Got {float8}.",
                        others=listed(others),
                        runtime=runtime.name,
                        float8=o.float8,
                    )
                ),
                "float8",
                ("runtime",),
            )
        return "none"
    chosen: str = q.take("float8", o.float8, "none", "default", "products in 16 bit")
    if chosen not in runtime.float8:
        raise unknown("float8 scaling", chosen, runtime.float8)
    return chosen


def _replicas(facts: Facts, sizes: dict[str, Any], o: TrainingOptions, q: Question) -> int:
    runtime = facts.runtime
    if not runtime.replicates:
        if o.replicate_size not in (None, 1):
            raise NotApplicable(
                (
                    Message(
                        "{@replicate_size} (HSDP) is an option of fsdp2: it must be 1 with runtime {runtime}. "
                        "Got {replicate_size}.",
                        runtime=runtime.name,
                        replicate_size=o.replicate_size,
                    )
                ),
                "replicate_size",
                ("runtime",),
            )
        return 1
    count: int = q.take("replicate_size", o.replicate_size, 1, "default", "shards over all data-parallel ranks")
    check(facts, sizes, REPLICAS)
    return count


def _expandable(runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> bool:
    if runtime.classic_allocator:
        why = "PyTorch's own: PYTORCH_CUDA_ALLOC_CONF is not set"
        return bool(q.take("expandable_segments", o.expandable_segments, False, "runtime", why))
    if not runtime.shards_units:
        if o.expandable_segments is not None:
            raise NotApplicable(
                Message(
                    "{@expandable_segments}: what the allocator keeps is not known for runtime {runtime}. "
                    "Leave it out.",
                    runtime=runtime.name,
                ),
                "expandable_segments",
                ("runtime",),
            )
        return True
    return bool(
        q.take(
            "expandable_segments",
            o.expandable_segments,
            True,
            "runtime",
            "torchtitan, run_train.sh: PYTORCH_CUDA_ALLOC_CONF",
        )
    )
