"""A command that starts OpenRLHF with a plan: openrlhf 0.11.2, openrlhf/cli/train_ppo_ray.py."""

import shlex
from typing import TYPE_CHECKING, Any

from tonnage.estimate.step.objective import BETA
from tonnage.interchange.parts.openrlhf.read import ATTENTION
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed

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
        "objective",
        "runtime",
        "zero_stage",
        "precision",
        "recompute",
        "attention",
        "tensor_parallel_size",
        "context_parallel_size",
        "method",
        "lora_rank",
        "offload_optimizer",
        "optimizer",
        "engine_memory_share",
        "prompts_per_step",
        "num_generations",
        "max_completion_length",
        "rollout_accelerators",
        "async_steps",
        "rollout_tensor_parallel_size",
        "rollout_memory_share",
        "rollout_offload",
        "sequence_packing",
        "ppo_epochs",
    )
)
# Estimators of advantages; DAPO as OpenRLHF's examples/scripts/train_dapo_ray_hybrid_engine.sh has it.
ESTIMATORS = {"grpo": "group_norm", "dapo": "group_norm", "rloo": "rloo", "ppo": "gae"}
OF_DAPO = (
    ("algo.dynamic_filtering_enable", True),
    ("algo.dynamic_filtering_range", "0 1"),
    ("actor.eps_clip_low_high", "0.2 0.27"),
)
PRECISIONS = {"bf16-mixed": "bf16", "fp16-mixed": "fp16", "fp32": "fp32"}
METHODS = {"full": False, "lora": False, "qlora": True}


def write(w: PlannedRun) -> str:
    """The command: reinforcement learning of one model on DeepSpeed, with vLLM on its GPUs or beside them."""
    plan = w.training
    if plan is None or plan.post_training.objective not in ESTIMATORS:
        raise InvalidInput(
            Message(
                "OpenRLHF is written for reinforcement learning: {@objective} must be {objectives}.",
                objectives=listed(ESTIMATORS, "or"),
            )
        )
    _check(plan)
    words = [f"--{name} {value}" if value is not True else f"--{name}" for name, value in _arguments(w, plan)]
    return (
        "#!/bin/bash\npython3 -m openrlhf.cli.train_ppo_ray \\\n"
        + " \\\n".join(f"  {line}" for line in words)
        + ' \\\n  --data.prompt_dataset "$PROMPTS" --ckpt.output_dir "$OUTPUT" "$@"\n'
    )


def _check(plan: TrainingPlan) -> None:
    apart = plan.rollout.rollout_accelerators
    if plan.runtime != "deepspeed":
        raise InvalidInput("OpenRLHF trains with DeepSpeed: runtime must be deepspeed. Got {name}.", name=plan.runtime)
    if plan.precision not in PRECISIONS or plan.tuning.method not in METHODS:
        raise InvalidInput(
            "OpenRLHF trains full, lora or qlora in bf16-mixed, fp16-mixed or fp32. Got {method} in {precision}.",
            method=plan.tuning.method,
            precision=plan.precision,
        )
    if plan.recompute not in ("none", "full"):
        raise InvalidInput("OpenRLHF recomputes every layer or none. Got {recompute}.", recompute=plan.recompute)
    if plan.optimizer != "adamw":
        raise InvalidInput("OpenRLHF is written with adamw. Got {optimizer}.", optimizer=plan.optimizer)
    place = plan.offload
    if place.offload_optimizer == "nvme" or (place.offload_parameters, place.offload_activations) != ("none", "none"):
        raise InvalidInput("OpenRLHF moves optimizer states to the host, and nothing else.")
    if plan.rollout.rollout_engine != "vllm":
        raise InvalidInput("OpenRLHF generates with vllm. Got {engine}.", engine=plan.rollout.rollout_engine)
    if apart and plan.post_training.objective == "ppo":
        raise InvalidInput(
            "OpenRLHF is written with PPO where all models share the GPUs. Got {apart} that generate apart.",
            apart=apart,
        )


def _arguments(w: PlannedRun, plan: TrainingPlan) -> list[tuple[str, Any]]:
    made, objective = plan.rollout, plan.post_training.objective
    ranks = int(_chosen(w, "rollout_tensor_parallel_size", 1))
    generating = made.rollout_accelerators or w.cluster.size
    stays = plan.post_training.engine_memory_share
    beta = w.question["beta"] if w.is_set("beta") else BETA[plan.post_training.objective]
    found: list[tuple[str, Any]] = [
        ("actor.model_name_or_path", shlex.quote(w.place)),
        ("actor.num_nodes", w.cluster.num_hosts),
        ("actor.num_gpus_per_node", w.cluster.accelerators_per_host),
        ("vllm.num_engines", generating // ranks),
        ("vllm.tensor_parallel_size", ranks),
        ("algo.advantage.estimator", ESTIMATORS[objective]),
        ("rollout.batch_size", made.prompts_per_step),
        ("rollout.n_samples_per_prompt", made.num_generations),
        ("rollout.max_new_tokens", made.max_completion_length),
        ("data.max_len", plan.sequence_length),
        ("train.batch_size", int(plan.global_batch_size)),
        ("train.micro_batch_size", plan.micro_batch_size),
        ("rollout.micro_batch_size", plan.micro_batch_size),
        ("train.max_epochs", made.ppo_epochs),
        ("ds.zero_stage", plan.zero_stage),
        ("ds.param_dtype", PRECISIONS[plan.precision]),
        ("ds.tensor_parallel_size", plan.tensor_parallel_size),
        ("ds.ring_attn_size", plan.context_parallel_size),
        ("actor.gradient_checkpointing_enable", plan.recompute == "full"),
        ("ds.adam_offload", plan.offload.offload_optimizer == "cpu"),
        ("ds.packing_samples", made.sequence_packing),
        ("ds.load_in_4bit", METHODS[plan.tuning.method]),
        ("ds.lora.rank", 0 if plan.tuning.method == "full" else plan.tuning.lora_rank),
        (
            "ds.attn_implementation",
            next((one for one, ours in ATTENTION.items() if ours == plan.kernels.attention), ""),
        ),
    ]
    if objective != "ppo":
        found.append(("algo.kl.init_coef", beta))
    if objective == "dapo":
        found += OF_DAPO
    if made.rollout_accelerators:
        found.append(("train.async_enable", made.async_steps > 0))
    else:
        found += [
            ("train.colocate_all", True),
            ("vllm.gpu_memory_utilization", stays or _chosen(w, "rollout_memory_share", 0.95)),
            ("vllm.enable_sleep", not stays),
            ("ds.enable_sleep", bool(made.rollout_offload)),
        ]
    return [(name, value) for name, value in found if value is not False and value != ""]


def _kernel(plan: TrainingPlan) -> str:
    return next((name for name, ours in ATTENTION.items() if ours == plan.kernels.attention), "")


def _chosen(w: PlannedRun, option: str, usual: float) -> Any:
    """What was asked of the engine, or chosen for it with the time of the step."""
    value = w.answer.question.get(option)
    return usual if value is None else value.value
