"""Options that only some frameworks have: compilation, float8, replicated shards, the allocator; each refused where
it means nothing.
"""

from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.frameworks.base import PlanRequest, framework_of
from tonnage.estimate.inputs import MIDDLE_UPDATE, PUBLISHED_UPDATES, Question, own_of
from tonnage.estimate.options.parallel import facts_of
from tonnage.estimate.options.run_options import rate
from tonnage.estimate.plan.rule import Facts, check
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import REPLICAS
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, joined, listed, option_name
from tonnage.kernel.registry import unknown
from tonnage.numerics.precisions import te_recipe
from tonnage.runtimes import (
    PLACES,
    TrainingRuntime,
    narrow_runtimes,
    runtimes_with,
    training_runtime,
    training_runtimes,
)
from tonnage.runtimes.parts.base import OF_SHARDING, OF_STEP
from tonnage.runtimes.parts.megatron.pipeline import MODULES

# Names of torchao's and torchtitan's recipes -> the scales that they have (torchao, float8/config.py;
# torchtitan, components/quantization/mxfp8.md).
RECIPES_OF_TORCHAO = {
    "rowwise_with_gw_hp": "rowwise",
    **{f"fp8_{name}": name for name in ("tensorwise", "rowwise")},
    **{f"float8_{name}": name for name in ("tensorwise", "rowwise")},
    "mxfp8_rceil": "mxfp8",
    "mxfp8_cublas": "mxfp8",
    "mxfp8_cublas_rceil": "mxfp8",
}
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
    fields["replicate_size"] = _replicas(facts_of(model, runtime, o, says_why=q.is_read), sizes, o, q)
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
    return bool(q.take(name, wanted, False, "runtime", own_of(runtime.name)))


def _liger(model: Model, runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> bool:
    if o.liger is None:  # not noted, so that moves to runtimes without it leave nothing unsaid
        return False
    kind = str(model.config.get("model_type", ""))
    if o.liger and runtime.liger and kind not in runtime.liger:
        raise NotApplicable(
            (
                Message(
                    "Liger Kernel patches {liger}: {@liger} must be off with a model of type {kind}.",
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


def scaled_by_recipe(runtime: TrainingRuntime, o: TrainingOptions) -> TrainingOptions:
    """Options where `float8` names a recipe of Transformer Engine on a runtime that has these as its precision."""
    if o.float8 is None or o.precision is not None or not runtime.multiplies_narrow or not te_recipe(o.float8):
        return o
    return replace(o, precision=o.float8, float8=None)


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
    named = RECIPES_OF_TORCHAO.get((o.float8 or "").lower().replace("-", "_"), o.float8)
    chosen: str = q.take("float8", named, "none", "default", "products in 16 bit")
    if chosen not in runtime.float8 and te_recipe(chosen):
        able = listed(narrow_runtimes(), "or")
        raise NotApplicable(
            Message(
                "{@float8} {chosen} is not estimated with runtime {runtime}, which has {known}. Transformer Engine's "
                "recipe is: {@runtime} {able} with {@precision} {recipe}.",
                chosen=chosen,
                runtime=runtime.name,
                known=listed(runtime.float8),
                able=able,
                recipe=te_recipe(chosen),
            ),
            "float8",
            ("runtime",),
        )
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


# ---- Options of offloading, checked against what each runtime can move, and where to.

OFFLOADS = ("offload_optimizer", "offload_parameters", "offload_activations")


def offload_options(runtime: TrainingRuntime, stage: int, o: TrainingOptions, q: Question) -> dict[str, Any]:
    """The fields of a plan that say what lives in host memory, or behind it."""
    fields: dict[str, Any] = {name: _place(name, runtime, o, q) for name in OFFLOADS}
    if runtime.offloads_together:
        _of_fsdp2(fields, stage, o, q)
    framework_of(runtime).check_offload(fields, stage)
    fields["optimizer_offload_fraction"] = _fraction(fields, runtime, stage, o, q)
    fields["host_update_bandwidth"] = _update_bandwidth(fields, o, q)
    fields["offload_modules"] = _modules(fields, runtime, o, q)
    fields["data_loader_workers"] = _workers(o, q)
    return fields


def _place(name: str, runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> str:
    wanted: str | None = getattr(o, name)
    if wanted is not None and wanted not in PLACES:
        raise unknown(Message("place for {name}", name=name), wanted, PLACES)
    if wanted in (None, "none"):
        return "none"
    able: tuple[str, ...] = getattr(runtime, name)
    if wanted not in able:
        others = [other for other in training_runtimes() if wanted in getattr(training_runtime(other), name)]
        where = joined(" or ", able)
        raise InvalidPlan(
            "{name} must be {where} with runtime {runtime}. Got {said}. Runtimes that have it: {others}.",
            name=option_name(name),
            where=where,
            runtime=runtime.name,
            said=wanted,
            others=listed(others) or "none",
        )
    return str(q.put(name, wanted, "given"))


def _of_fsdp2(fields: dict[str, Any], stage: int, o: TrainingOptions, q: Question) -> None:
    """CPUOffloadPolicy moves shards of weights, gradients and optimizer states together."""
    pair = {name: fields[name] for name in ("offload_optimizer", "offload_parameters")}
    for name, place in pair.items():
        if place != "none" and stage < 2:
            raise InvalidPlan(
                "{name} is a policy of FSDP2: {@zero_stage} must be 2 or 3. Got {stage}.",
                name=option_name(name),
                stage=stage,
            )
    if len(set(pair.values())) == 1:
        return
    left = next(name for name, place in pair.items() if place == "none")
    if getattr(o, left) is not None:
        raise InvalidPlan(
            "FSDP2's CPUOffloadPolicy moves weights, gradients and optimizer together: {left} must be "
            "cpu as well. Got none.",
            left=left,
        )
    fields[left] = q.put(left, "cpu", "runtime", "FSDP2's CPUOffloadPolicy moves both")


def _fraction(fields: dict[str, Any], runtime: TrainingRuntime, stage: int, o: TrainingOptions, q: Question) -> float:
    wanted = o.optimizer_offload_fraction
    able = stage >= runtime.offload_fraction_from
    if wanted is not None and (fields["offload_optimizer"] != "cpu" or not able):
        raise NotApplicable(
            Message(
                "{@optimizer_offload_fraction} belongs to {@offload_optimizer} cpu with megatron, or "
                "with deepspeed and ZeRO stage 3. Got {said} with runtime {runtime}.",
                said=wanted,
                runtime=runtime.name,
            ),
            "optimizer_offload_fraction",
            ("offload_optimizer", "runtime", "zero_stage"),
        )
    if wanted is not None and not 0 <= wanted <= 1:
        raise InvalidPlan("{@optimizer_offload_fraction} must be from 0 to 1. Got {said}.", said=wanted)
    if fields["offload_optimizer"] != "cpu" or not able:
        return 1
    return float(q.take("optimizer_offload_fraction", wanted, 1.0, "runtime", own_of(runtime.name)))


def _update_bandwidth(fields: dict[str, Any], o: TrainingOptions, q: Question) -> float | None:
    """No value of a plan without one: what published updates reach lies a factor of thirty apart, so that a time is
    a range, with its middle in the question.
    """
    bandwidth = rate("host_update_bandwidth", o.host_update_bandwidth)
    if bandwidth is None:
        if fields["offload_optimizer"] != "none":
            q.put("host_update_bandwidth", round(MIDDLE_UPDATE), "default", PUBLISHED_UPDATES)
        return None
    if fields["offload_optimizer"] == "none":
        raise NotApplicable(
            Message(
                "{@host_update_bandwidth} belongs to {@offload_optimizer} cpu or nvme. Got {said:g} with none.",
                said=bandwidth,
            ),
            "host_update_bandwidth",
            ("offload_optimizer",),
        )
    return float(q.put("host_update_bandwidth", bandwidth, "given"))


def _modules(fields: dict[str, Any], runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> str:
    if "offload_modules" not in runtime.options or fields["offload_activations"] == "none":
        if o.offload_modules is not None:
            raise NotApplicable(
                (
                    Message(
                        "{@offload_modules} belong to {@offload_activations} cpu of megatron. Got "
                        "{offload_modules} with runtime {runtime}.",
                        offload_modules=o.offload_modules,
                        runtime=runtime.name,
                    )
                ),
                "offload_modules",
                ("offload_activations", "runtime"),
            )
        return ""
    modules = str(
        q.take("offload_modules", o.offload_modules, ",".join(MODULES), "default", "all that Megatron-core knows")
    )
    names = [part.strip() for part in modules.split(",") if part.strip()]
    for name in names:
        if name not in MODULES:
            raise unknown("module to offload", name, MODULES)
    return ",".join(names)


def _workers(o: TrainingOptions, q: Question) -> int:
    workers = o.data_loader_workers
    if workers is not None and not 0 <= workers <= 4096:
        raise InvalidPlan("{@data_loader_workers} must be from 0 to 4,096. Got {said:,}.", said=workers)
    return int(q.take("data_loader_workers", workers, 0, "default", "torch's own: the process loads its data itself"))
