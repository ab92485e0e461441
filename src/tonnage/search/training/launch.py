"""Settings that start a plan in its runtime, by the runtime's own names.

Sources: Megatron-LM, megatron/training/arguments.py; torchtitan, torchtitan/config/configs.py (0.3); transformers, training_args.py.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate._pipeline_layout import chunk_layers
from tonnage.precisions import TRAINING_RECIPES
from tonnage.runtimes import training_runtime
from tonnage.spec import TrainingPlan

MEGATRON = {
    "tensor_parallel_size": "--tensor-model-parallel-size", "pipeline_parallel_size": "--pipeline-model-parallel-size",
    "context_parallel_size": "--context-parallel-size", "expert_parallel_size": "--expert-model-parallel-size",
    "expert_tensor_parallel_size": "--expert-tensor-parallel-size", "virtual_pipeline_size": "--num-virtual-stages-per-pipeline-rank",
}  # fmt: skip
TITAN = {
    "tensor_parallel_size": "--parallelism.tensor_parallel_degree", "pipeline_parallel_size": "--parallelism.pipeline_parallel_degree",
    "context_parallel_size": "--parallelism.context_parallel_degree", "expert_parallel_size": "--parallelism.expert_parallel_degree",
    "expert_tensor_parallel_size": "--parallelism.expert_tensor_parallel_degree",
}  # fmt: skip
TITAN_SCHEDULES = {"1f1b": "1F1B", "interleaved-1f1b": "Interleaved1F1B", "gpipe": "GPipe", "interleaved-zero-bubble": "InterleavedZeroBubble",
                   "zbv": "ZBVZeroBubble", "dualpipev": "DualPipeV"}  # fmt: skip


SAID = (
    "method",
    "optimizer",
    "precision",
    "loss",
    "offload_optimizer",
    "offload_parameters",
    "offload_activations",
    "base_weights",
    "objective",
)
PLAIN = {
    "method": "full",
    "optimizer": "adamw",
    "precision": "bf16-mixed",
    "loss": "full",
    "base_weights": "",
    "objective": "sft",
}
# What the writers below have words for, beside sizes, ZeRO and recomputation.
WRITTEN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "megatron": {"precision": ("fp16-mixed", "fp8-te"), "offload_optimizer": ("cpu",)},
    "fsdp2": {}, "transformers": {"precision": ("fp16-mixed",)}, "ddp": {"precision": ("fp16-mixed",)},
}  # fmt: skip


def launch_lacks(plan: TrainingPlan) -> list[str]:
    """What of a plan the settings do not say, so that they alone would start another run."""
    words = WRITTEN.get(plan.runtime)
    if words is None:
        return [f"how {plan.runtime} is started"]
    found = [(name, getattr(plan, name)) for name in SAID]
    lacking = [
        (name, value) for name, value in found if value != PLAIN.get(name, "none") and value not in words.get(name, ())
    ]
    return [f"{name} {value}" for name, value in lacking]


def launch_settings(model: Model, plan: TrainingPlan) -> list[str]:
    """Options of the runtime for what a search chooses; none for a runtime whose options are not written here."""
    made = WRITERS.get(plan.runtime)
    settings = made(plan) if made else []
    return [*settings, *_uneven(model, plan)] if plan.runtime == "megatron" else settings


def _sizes(plan: TrainingPlan, names: Mapping[str, str]) -> list[str]:
    return [f"{flag} {value}" for name, flag in names.items() if (value := getattr(plan, name)) > 1]


def _uneven(model: Model, plan: TrainingPlan) -> list[str]:
    """Megatron splits evenly or as a layout says: E is the embedding, t a layer, L the loss."""
    p = plan.pipeline_parallel_size
    if p == 1 or model.num_layers % p == 0 or plan.virtual_pipeline_size > 1:
        return []
    stages = ["t" * count for count in chunk_layers(model, training_runtime(plan.runtime), plan)]
    return [f"--pipeline-model-parallel-layout '{'|'.join(['E' + stages[0], *stages[1:-1], stages[-1] + 'L'])}'"]


def _megatron(plan: TrainingPlan) -> list[str]:
    made = _sizes(plan, MEGATRON)
    if plan.expert_parallel_size > 1 and plan.expert_tensor_parallel_size == 1 and plan.tensor_parallel_size > 1:
        made.append("--expert-tensor-parallel-size 1")  # else it is the tensor size
    made += ["--sequence-parallel"] if plan.sequence_parallel and plan.tensor_parallel_size > 1 else []
    made += [
        f"--micro-batch-size {plan.micro_batch_size}",
        f"--global-batch-size {plan.global_batch_size}",
        f"--seq-length {plan.sequence_length}",
    ]
    made += ["--use-distributed-optimizer"] if plan.zero_stage else []
    made += _again(plan)
    made += ["--optimizer-cpu-offload"] if plan.offload_optimizer == "cpu" else []
    if plan.precision == "fp8-te":
        return [*made, "--bf16", "--fp8-format hybrid"]
    return [*made, "--fp16" if TRAINING_RECIPES[plan.precision].compute == "fp16" else "--bf16"]


def _again(plan: TrainingPlan) -> list[str]:
    if plan.recompute == "full":
        return ["--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"]
    if plan.recompute == "selective":
        return ["--recompute-granularity selective", f"--recompute-modules {plan.recompute_modules.replace(',', ' ')}"]
    return []


def _titan(plan: TrainingPlan) -> list[str]:
    made = _sizes(plan, TITAN)
    if plan.pipeline_parallel_size > 1:
        local = plan.micro_batch_size * plan.num_microbatches
        made.append(f"--parallelism.pipeline_parallel_schedule {TITAN_SCHEDULES[plan.pipeline_schedule]}")
        made.append(f"--parallelism.pipeline_parallel_microbatch_size {plan.micro_batch_size}")
    else:
        local = plan.micro_batch_size
    made += [
        f"--training.local_batch_size {local}",
        f"--training.global_batch_size {plan.global_batch_size}",
        f"--training.seq_len {plan.sequence_length}",
    ]
    made.append(f"--parallelism.fsdp_reshard_after_forward {'always' if plan.zero_stage == 3 else 'never'}")
    kind = {"none": "none", "full": "full", "selective": "selective", "selective-op": "selective"}[plan.recompute]
    return [*made, f"--activation_checkpoint.mode {kind}"]


def _trainer(plan: TrainingPlan) -> list[str]:
    made = [
        f"--per_device_train_batch_size {plan.micro_batch_size}",
        f"--gradient_accumulation_steps {plan.num_microbatches}",
    ]
    made += ["--gradient_checkpointing true"] if plan.recompute != "none" else []
    compute = TRAINING_RECIPES[plan.precision].compute
    return [*made, f"--{compute} true"] if compute in ("bf16", "fp16") else made


WRITERS: Mapping[str, Callable[[TrainingPlan], list[Any]]] = {
    "megatron": _megatron,
    "fsdp2": _titan,
    "transformers": _trainer,
    "ddp": _trainer,
}
