"""Options of torchtitan's command for a plan: batch, parallelism, recomputation.

Source: torchtitan 0.3.0, torchtitan/config/configs.py, torchtitan/distributed/{pipeline_parallel,
activation_checkpoint}.py.
"""

from tonnage.architectures import Model
from tonnage.estimate.plan.schedule import schedule_of
from tonnage.kernel.formula import ceil_div
from tonnage.spec import TrainingPlan

SCHEDULES = {
    "1f1b": "1F1B",
    "interleaved-1f1b": "Interleaved1F1B",
    "gpipe": "GPipe",
    "interleaved-zero-bubble": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
}
# Recomputation -> torchtitan's policy; its selective one chooses operations.
POLICIES = {"none": "none", "full": "full", "selective-op": "selective"}
# Sizes that configs of torchtitan set too, so that 1 must be said.
SET_BY_CONFIGS = ("data_parallel_shard_degree", "tensor_parallel_degree", "expert_parallel_degree")


def batch_flags(plan: TrainingPlan) -> list[str]:
    """The batch of a data-parallel rank is that of all micro-batches under a pipeline, else one of them."""
    local = plan.micro_batch_size * (plan.num_microbatches if plan.pipeline_parallel_size > 1 else 1)
    return [
        f"--training.seq_len {plan.sequence_length}",
        f"--training.local_batch_size {local}",
        f"--training.global_batch_size {plan.global_batch_size}",
    ]


def parallelism_flags(model: Model, plan: TrainingPlan) -> list[str]:
    sizes = {
        "data_parallel_replicate_degree": plan.replicate_size,
        "data_parallel_shard_degree": plan.data_parallel_size // plan.replicate_size,
        "tensor_parallel_degree": plan.tensor_parallel_size,
        "context_parallel_degree": plan.context_parallel_size,
        "pipeline_parallel_degree": plan.pipeline_parallel_size,
        "expert_parallel_degree": plan.expert_parallel_size,
    }
    flags = [f"--parallelism.{name} {size}" for name, size in sizes.items() if size > 1 or name in SET_BY_CONFIGS]
    flags.append(f"--parallelism.fsdp_reshard_after_forward {'always' if plan.zero_stage == 3 else 'never'}")
    if plan.tensor_parallel_size > 1 and not plan.sequence_parallel:
        flags.append("--parallelism.no-enable_sequence_parallel")
    if plan.pipeline_parallel_size > 1:
        flags.append(f"--parallelism.pipeline_parallel_schedule {SCHEDULES[schedule_of(plan).name]}")
        flags.append(f"--parallelism.pipeline_parallel_microbatch_size {plan.micro_batch_size}")
        if layers := _layers_per_stage(model, plan):
            flags.append(f"--parallelism.pipeline_parallel_layers_per_stage {layers}")
    return flags


def recompute_flags(plan: TrainingPlan) -> list[str]:
    """The policy: a word of its own, which stands behind all options."""
    return [f"activation_checkpoint:{POLICIES[plan.recompute]}"] if plan.recompute in POLICIES else []


def lacking(model: Model, plan: TrainingPlan) -> list[str]:
    """What of a plan torchtitan has no option for."""
    lacks = []
    if _needs_layers(plan) and not _layers_per_stage(model, plan):
        lacks.append(f"virtual_pipeline_size {plan.virtual_pipeline_size}")
    if plan.recompute not in POLICIES:
        lacks.append(f"recompute {plan.recompute}")
    if plan.expert_tensor_parallel_size > 1:
        lacks.append(f"expert_tensor_parallel_size {plan.expert_tensor_parallel_size}")
    if plan.megatron.moe_token_dispatcher_type != "alltoall":  # the model's code chooses it
        lacks.append(f"moe_token_dispatcher_type {plan.megatron.moe_token_dispatcher_type}")
    return lacks


def _needs_layers(plan: TrainingPlan) -> bool:
    """torchtitan gives a rank one stage, or two under a looped schedule, unless it is told otherwise."""
    return plan.virtual_pipeline_size > 2


def _layers_per_stage(model: Model, plan: TrainingPlan) -> int:
    """Layers of a stage that make as many stages; 0 where no number does, or none is needed. Table and head count as a
    layer each, and the stages are rounded up.
    """
    if not _needs_layers(plan):
        return 0
    count, layers = plan.pipeline_parallel_size * plan.virtual_pipeline_size, model.num_layers + 2
    per_stage = int(ceil_div(layers, count))
    return per_stage if ceil_div(layers, per_stage) == count else 0
