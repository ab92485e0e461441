"""How a plan of Megatron-core is started: options of Megatron-LM (megatron/training/arguments.py)."""

from tonnage.architectures import Model
from tonnage.estimate.frameworks.base import size_flags
from tonnage.estimate.step.pipeline_layout import chunk_layers
from tonnage.numerics.precisions import TRAINING_RECIPES
from tonnage.runtimes import training_runtime
from tonnage.spec import TrainingPlan

FLAGS = {
    "tensor_parallel_size": "--tensor-model-parallel-size",
    "pipeline_parallel_size": "--pipeline-model-parallel-size",
    "context_parallel_size": "--context-parallel-size",
    "expert_parallel_size": "--expert-model-parallel-size",
    "expert_tensor_parallel_size": "--expert-tensor-parallel-size",
    "virtual_pipeline_size": "--num-virtual-stages-per-pipeline-rank",
}
# Schedules of the authors' Megatron-LM of zero-bubble pipelines (ZeroBubble, README.md): a limit of as many pending
# backward passes as there are stages is ZB-H1 (ZB1P), of twice as many ZB-H2 (ZB2P).
PENDING = {"zb-h1": 1, "zb-h2": 2}
# What Megatron-FSDP shards (--data-parallel-sharding-strategy), by ZeRO stage.
SHARDED = {2: "optim_grads", 3: "optim_grads_params"}


def launch_flags(model: Model, plan: TrainingPlan) -> list[str]:
    """The options that start this plan."""
    flags = [*_flags(plan), *_layout_flags(model, plan)]
    if plan.pipeline_schedule == "zbv":  # which has two chunks
        chunks = f"{FLAGS['virtual_pipeline_size']} {plan.virtual_pipeline_size}"
        flags = [*(flag for flag in flags if flag != chunks), "--zero-bubble-v-schedule"]
    if plan.pipeline_schedule in PENDING:
        pending = PENDING[plan.pipeline_schedule] * plan.pipeline_parallel_size
        flags += ["--enable-zero-bubble", f"--zero-bubble-max-pending-backward {pending}"]
    # ZB-H2 and ZB-V have a bubble where ranks wait for each other before they update
    return [*flags, "--enable-optimizer-post-validation"] if plan.pipeline_schedule in ("zb-h2", "zbv") else flags


def _flags(plan: TrainingPlan) -> list[str]:
    """Megatron-LM, megatron/training/arguments.py."""
    flags = size_flags(plan, FLAGS)
    if plan.expert_parallel_size > 1 and plan.expert_tensor_parallel_size == 1 and plan.tensor_parallel_size > 1:
        flags.append("--expert-tensor-parallel-size 1")  # else it is the tensor size
    flags += ["--sequence-parallel"] if plan.sequence_parallel and plan.tensor_parallel_size > 1 else []
    flags += [
        f"--micro-batch-size {plan.micro_batch_size}",
        f"--global-batch-size {plan.global_batch_size}",
        f"--seq-length {plan.sequence_length}",
    ]
    flags += ["--use-distributed-optimizer"] if plan.zero_stage else []
    if plan.zero_stage in SHARDED:
        flags += [
            "--use-megatron-fsdp",
            f"--data-parallel-sharding-strategy {SHARDED[plan.zero_stage]}",
            "--no-gradient-accumulation-fusion",
        ]
    flags += _recompute_flags(plan)
    flags += ["--tp-comm-overlap"] if plan.megatron.tp_comm_overlap else []
    flags += ["--overlap-moe-expert-parallel-comm"] if plan.megatron.overlap_moe_expert_parallel_comm else []
    # Without it Megatron's experts gather every token of every rank.
    dispatched = plan.expert_parallel_size > 1
    flags += [f"--moe-token-dispatcher-type {plan.megatron.moe_token_dispatcher_type}"] if dispatched else []
    flags += ["--optimizer-cpu-offload"] if plan.offload.offload_optimizer == "cpu" else []
    if plan.precision == "fp8-te":
        return [*flags, "--bf16", "--fp8-format hybrid"]
    return [*flags, "--fp16" if TRAINING_RECIPES[plan.precision].compute == "fp16" else "--bf16"]


def _recompute_flags(plan: TrainingPlan) -> list[str]:
    if plan.recompute == "full":
        return ["--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"]
    if plan.recompute == "selective":
        return [
            "--recompute-granularity selective",
            f"--recompute-modules {plan.megatron.recompute_modules.replace(',', ' ')}",
        ]
    return []


def _layout_flags(model: Model, plan: TrainingPlan) -> list[str]:
    """Megatron splits evenly, or as options say. Of one chunk a stage a layout says it: E is the embedding, t a
    layer, L the loss. Of several chunks, whose number the layout would repeat, the sizes of the ends do, or that
    table and head count as a layer.
    """
    layers = chunk_layers(model, training_runtime(plan.runtime), plan)
    if len(set(layers)) == 1:
        return []
    if plan.virtual_pipeline_size == 1:
        stages = ["t" * count for count in layers]
        return [f"--pipeline-model-parallel-layout '{'|'.join(['E' + stages[0], *stages[1:-1], stages[-1] + 'L'])}'"]
    ends = {"first": plan.layout.first_stage_layers, "last": plan.layout.last_stage_layers}
    if any(ends.values()):
        return [f"--decoder-{end}-pipeline-num-layers {size}" for end, size in ends.items() if size]
    most = max(layers)
    counted = {"embedding": layers[0] < most, "loss": layers[-1] < most}
    return [f"--account-for-{end}-in-pipeline-split" for end, is_counted in counted.items() if is_counted]
