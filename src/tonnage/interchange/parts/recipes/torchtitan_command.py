"""The command line that starts a plan in torchtitan 0.3."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.recipes.torchtitan_registry import CONFIGS, config_of
from tonnage.interchange.parts.recipes.trainer_options import refuse
from tonnage.interchange.planned_run import PlannedRun
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed, option_name

OPTIMIZERS = {("adamw", kind): kind for kind in ("fused", "foreach", "for-loop")} | {
    ("adamw-bf16", "fused"): "fused_opt_states_bf16"
}
HOST = "HEAD_NODE"


def completed_titan(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """What every config of torchtitan 0.3 sets: FlexAttention, and a loss in chunks."""
    return {"attention": "flash", "loss": "chunked"}


def titan_command(w: PlannedRun) -> str:
    from tonnage.estimate.frameworks import torchtitan_flags as titan

    plan = w.training
    assert plan is not None
    config = config_of(w.model.name)
    if not config:
        raise InvalidInput(
            "torchtitan 0.3 has no config of {model}: it has those of {names}.",
            model=w.model.name,
            names=", ".join(dict.fromkeys(recipe.model for recipe in CONFIGS.values())),
        )
    recipe = CONFIGS[config]
    refuse(
        w,
        "torchtitan",
        {
            "model_code": ("torchtitan", ""),
            "runtime_version": ("",),
            "method": ("full",),
            "objective": ("sft",),
            "attention": ("flash",),
            "loss": ("full", "chunked"),
            "precision": ("bf16-mixed", "bf16", "fp32"),
            "float8": (recipe.float8 or "none",),
            "optimizer": ("muon",) if recipe.muon else ("adamw", "adamw-bf16"),
            "optimizer_in_backward": (False,),
            "offload_activations": ("none",),
            "packing": (False,),
        },
    )
    if lacks := titan.lacking(w.model, plan):
        raise InvalidInput("torchtitan has no words for {options}.", options=listed(lacks))
    if plan.replicate_size > 1 and plan.replicate_size == plan.data_parallel_size:
        raise InvalidInput(
            "torchtitan runs DDP where nothing shards: {option} must be below the {count} data-parallel ranks. Got "
            "{size}.",
            option=option_name("replicate_size"),
            count=plan.data_parallel_size,
            size=plan.replicate_size,
        )
    words = [
        *_start(w, plan),
        f"--module {recipe.module}",
        f"--config {config}",
        *titan.batch_flags(plan),
        *_training(w, plan),
        *titan.parallelism_flags(w.model, plan),
        *_kernels(plan, recipe.muon),
        *titan.recompute_flags(plan),
    ]
    return "#!/usr/bin/env bash\n" + " \\\n    ".join(words) + "\n"


def _start(w: PlannedRun, plan: Any) -> list[str]:
    nodes = getattr(w.cluster, "num_nodes", 1)
    per_node = w.cluster.size // nodes
    meeting = [f"--nnodes={nodes}", "--rdzv_backend c10d", f'--rdzv_endpoint="{HOST}:29500"'] if nodes > 1 else []
    allocator = 'PYTORCH_ALLOC_CONF="expandable_segments:True" ' if plan.expandable_segments else ""
    return [f"{allocator}torchrun", f"--nproc_per_node={per_node}", *meeting, "-m torchtitan.train"]


def _training(w: PlannedRun, plan: Any) -> list[str]:
    words = [f"--training.steps {steps}"] if (steps := w.question.get("max_steps")) else []
    if plan.precision == "bf16":
        words.append("--training.dtype bfloat16")
    elif plan.precision == "fp32":
        words.append("--training.mixed_precision_param float32")
    if plan.offload.offload_parameters == "cpu":
        words.append("--training.enable_cpu_offload")
    return words


def _kernels(plan: Any, muon: bool) -> list[str]:
    words = ["--compile.enable", "--compile.components model,loss"] if plan.kernels.compile else ["--compile.no-enable"]
    asynchronous = "" if plan.kernels.async_tensor_parallel else "no-"
    words.append(f"--compile.{asynchronous}enable_async_tensor_parallel")
    if plan.loss == "full":
        words.append("--loss.num_chunks 1")
    kind = OPTIMIZERS.get((plan.optimizer, plan.optimizer_implementation))
    if not muon and kind is None:
        raise InvalidInput(
            "torchtitan has no {name} with {kind}.", name=plan.optimizer, kind=plan.optimizer_implementation
        )
    if not muon and kind != "fused":
        words.append(f"--optimizer.implementation {kind}")
    return words
