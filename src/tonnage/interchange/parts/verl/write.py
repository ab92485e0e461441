"""A command that starts veRL with a plan."""

import shlex
from typing import TYPE_CHECKING, Any

from tonnage.estimate.options.tools import check_lacking
from tonnage.estimate.step.objective import BETA
from tonnage.interchange.parts.verl.values import ACTOR, FSDP, MODEL, REF, ROLLOUT
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.runtimes.parts.rl_tools import VERL

if TYPE_CHECKING:
    from tonnage.interchange.planned_run import PlannedRun
    from tonnage.spec import TrainingPlan
else:
    TrainingPlan = PlannedRun = Any

SAYS = frozenset(
    (
        "sequence_length",
        "micro_batch_size",
        "global_batch_size",
        "num_microbatches",
        "data_parallel_size",
        "loss",
        "objective",
        "runtime",
        "model_code",
        "zero_stage",
        "replicate_size",
        "precision",
        "recompute",
        "context_parallel_size",
        "method",
        "lora_rank",
        "offload_parameters",
        "offload_activations",
        "optimizer",
        "engine_memory_share",
        "prompts_per_step",
        "num_generations",
        "max_completion_length",
        "rollout_engine",
        "rollout_tensor_parallel_size",
        "rollout_max_num_seqs",
        "rollout_memory_share",
        "rollout_offload",
        "sequence_packing",
        "ppo_epochs",
    )
)
# Estimators of advantages; DAPO is GRPO with another clip and without a KL divergence (verl, recipe/dapo/*.sh).
ESTIMATORS = {"grpo": "grpo", "dapo": "grpo", "rloo": "rloo", "ppo": "gae"}
DAPO_CLIP = 0.28  # the same: clip_ratio_high
OF_RECIPE = (
    "# DAPO's dynamic sampling (algorithm.filter_groups) and its overlong buffer are of veRL's recipe dapo alone.\n"
)
OPTIMIZERS = {"adamw": "AdamW", "adamw-8bit": "AdamW8bit"}


def write(w: PlannedRun) -> str:
    """The command: reinforcement learning of one model on FSDP."""
    plan = w.training
    if plan is None or plan.post_training.objective not in ESTIMATORS:
        raise InvalidInput(
            Message(
                "veRL is written for reinforcement learning: {@objective} must be {objectives}.",
                objectives=listed(ESTIMATORS, "or"),
            )
        )
    if plan.runtime != "fsdp2" or plan.model_code != "transformers":
        raise InvalidInput(
            "veRL is written with FSDP: runtime must be fsdp2, with the code of transformers. Got {runtime} with "
            "{code}.",
            runtime=plan.runtime,
            code=plan.model_code,
        )
    for name in VERL.lacks:
        check_lacking(VERL, name, int(plan.field(name)))
    if plan.rollout.rollout_accelerators:
        raise InvalidInput(
            "veRL is written with an engine on the accelerators that train. Got {apart} that generate apart.",
            apart=plan.rollout.rollout_accelerators,
        )
    lines = [f"{name}={value}" for name, value in _keys(w, plan).items()]
    note = OF_RECIPE if plan.post_training.objective == "dapo" else ""
    return (
        f"#!/bin/bash\n{note}python3 -m verl.trainer.main_ppo \\\n"
        + " \\\n".join(f"  {line}" for line in lines)
        + ' "$@"\n'
    )


def _keys(w: PlannedRun, plan: TrainingPlan) -> dict[str, Any]:
    made = plan.rollout
    prompts = int(plan.global_batch_size) // made.num_generations
    share = plan.post_training.engine_memory_share
    keys: dict[str, Any] = {
        "algorithm.adv_estimator": ESTIMATORS[plan.post_training.objective],
        "data.train_files": '"$TRAIN_FILES"',
        "data.val_files": '"$VAL_FILES"',
        "data.max_prompt_length": plan.sequence_length - made.max_completion_length,
        "data.max_response_length": made.max_completion_length,
        "data.train_batch_size": made.prompts_per_step,
        f"{MODEL}path": shlex.quote(w.place),
        f"{MODEL}enable_gradient_checkpointing": plan.recompute == "full",
        f"{MODEL}use_fused_kernels": plan.loss == "tiled",
        f"{MODEL}enable_activation_offload": plan.offload.offload_activations == "cpu",
        f"{ACTOR}strategy": "fsdp2",
        f"{ACTOR}ppo_mini_batch_size": prompts,
        f"{ACTOR}ppo_epochs": made.ppo_epochs,
        f"{ACTOR}ppo_micro_batch_size_per_gpu": plan.micro_batch_size,
        f"{ACTOR}ulysses_sequence_parallel_size": plan.context_parallel_size,
        **_sharding(w, plan),
        f"{ROLLOUT}name": made.rollout_engine,
        f"{ROLLOUT}n": made.num_generations,
        f"{ROLLOUT}tensor_model_parallel_size": _chosen(w, "rollout_tensor_parallel_size", 1),
        f"{ROLLOUT}gpu_memory_utilization": share or _chosen(w, "rollout_memory_share", 0.5),
        f"{ROLLOUT}free_cache_engine": not share,
        f"{ROLLOUT}log_prob_micro_batch_size_per_gpu": plan.micro_batch_size,
        f"{REF}log_prob_micro_batch_size_per_gpu": plan.micro_batch_size,
        "trainer.nnodes": w.cluster.num_hosts,
        "trainer.n_gpus_per_node": w.cluster.accelerators_per_host,
    }
    if plan.loss == "full-entropy":
        keys[f"{ACTOR}calculate_entropy"] = True
    if made.rollout_max_num_seqs:
        keys[f"{ROLLOUT}max_num_seqs"] = made.rollout_max_num_seqs
    if made.rollout_offload:
        keys |= {f"{FSDP}param_offload": True, f"{FSDP}optimizer_offload": True}
    if made.sequence_packing:
        keys[f"{MODEL}use_remove_padding"] = True
    beta = w.question["beta"] if w.is_set("beta") else BETA[plan.post_training.objective]
    if plan.post_training.objective != "ppo" and beta:
        keys |= {f"{ACTOR}use_kl_loss": True, f"{ACTOR}kl_loss_coef": beta}
    if plan.post_training.objective == "dapo":
        keys[f"{ACTOR}clip_ratio_high"] = DAPO_CLIP
    if plan.tuning.method == "lora":
        keys |= {f"{MODEL}lora_rank": plan.tuning.lora_rank, f"{MODEL}lora_alpha": 2 * plan.tuning.lora_rank}
    elif plan.tuning.method != "full":
        raise InvalidInput("veRL trains all weights or LoRA. Got {method}.", method=plan.tuning.method)
    if plan.post_training.objective == "ppo":
        keys |= {
            "critic.model.path": shlex.quote(w.place),
            "critic.ppo_micro_batch_size_per_gpu": plan.micro_batch_size,
        }
    return keys


def _chosen(w: PlannedRun, option: str, usual: float) -> Any:
    """What was asked of the engine, or chosen for it with the time of the step."""
    value = w.answer.question.get(option)
    return usual if value is None else value.value


def _sharding(w: PlannedRun, plan: TrainingPlan) -> dict[str, Any]:
    types = {"bf16-mixed": "fp32", "bf16": "bf16"}
    if plan.precision not in types:
        raise InvalidInput("veRL's FSDP has bf16-mixed and bf16. Got {precision}.", precision=plan.precision)
    if plan.recompute not in ("none", "full"):
        raise InvalidInput("veRL recomputes every layer or none. Got {recompute}.", recompute=plan.recompute)
    if plan.optimizer not in OPTIMIZERS:
        raise InvalidInput("veRL is written with adamw and adamw-8bit. Got {optimizer}.", optimizer=plan.optimizer)
    place = plan.offload
    if "nvme" in (place.offload_optimizer, place.offload_parameters, place.offload_activations):
        raise InvalidInput("veRL offloads to the host, not to a disk.")
    if (place.offload_optimizer == "cpu") != (place.offload_parameters == "cpu"):
        raise InvalidInput("veRL's offload_policy moves weights and optimizer together.")
    return {
        f"{FSDP}model_dtype": types[plan.precision],
        f"{FSDP}reshard_after_forward": plan.zero_stage == 3,
        f"{FSDP}fsdp_size": w.cluster.size // int(plan.replicate_size) if plan.replicate_size > 1 else -1,
        f"{FSDP}offload_policy": place.offload_parameters == "cpu",
        f"{ACTOR}optim.optimizer": OPTIMIZERS[plan.optimizer],
    }
