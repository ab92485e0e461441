"""The command that trains adapters beside a model of transformers: TRL's, with peft, started by accelerate.

Sources: TRL 1.16, trl/trainer/{model_config,sft_config,dpo_config}.py and trl/accelerate_configs; accelerate 1.15,
accelerate/commands/launch.py.
"""

from collections.abc import Sequence
from shlex import quote

from tonnage.architectures import Model
from tonnage.estimate.answer.launch import place
from tonnage.estimate.frameworks.base import framework_of
from tonnage.runtimes import training_runtime
from tonnage.spec import TrainingPlan

METHODS, OBJECTIVES = ("lora", "dora"), ("sft", "dpo")
ATTENTION = {"sdpa": "sdpa", "eager": "eager", "flash": "flash_attention_2"}


def trains(plan: TrainingPlan) -> bool:
    """Whether it is such a plan: TRL has no layers that freeze, and the sizes of no model that is split."""
    is_unsplit = (
        plan.tensor_parallel_size
        == plan.pipeline_parallel_size
        == plan.context_parallel_size
        == plan.expert_parallel_size
        == 1
    )
    return (
        plan.tuning.method in METHODS
        and plan.post_training.objective in OBJECTIVES
        and is_unsplit
        and bool(training_runtime(plan.runtime).trl_config)
    )


def trl_command(model: Model, plan: TrainingPlan) -> list[str]:
    """The words of the command, one option each."""
    runtime = training_runtime(plan.runtime)
    framework = framework_of(runtime)
    config = framework.trl_config(plan, runtime.trl_config)
    words = [
        f"trl {plan.post_training.objective}",
        f"--accelerate_config {config}",
        f"--num_processes {plan.world_size}",
    ]
    words += framework.trl_sharding(plan)
    words += [
        f"--model_name_or_path {quote(place(model))}",
        "--dataset_name DATASET",
        "--output_dir OUTPUT",
        "--dtype bfloat16",
    ]
    words += _adapters(plan)
    words += _base(plan, framework.trl_base)
    words += [
        f"--per_device_train_batch_size {plan.micro_batch_size}",
        f"--gradient_accumulation_steps {plan.num_microbatches}",
        f"--max_length {plan.sequence_length}",
        f"--gradient_checkpointing {'false' if plan.recompute == 'none' else 'true'}",  # TRL's own is true
    ]
    words += (
        [f"--attn_implementation {ATTENTION[plan.kernels.attention]}"] if plan.kernels.attention in ATTENTION else []
    )
    words += ["--packing"] if plan.packing else []
    return words + (["--use_liger_kernel"] if plan.kernels.liger else [])


def _adapters(plan: TrainingPlan) -> list[str]:
    words = ["--use_peft", f"--lora_r {plan.tuning.lora_rank}"]
    words.append(f"--lora_target_modules {plan.tuning.lora_targets.replace(',', ' ') or 'all-linear'}")
    words += [] if plan.tuning.lora_dropout else ["--lora_dropout 0.0"]  # TRL's own is 0.05
    return words + (["--use_dora"] if plan.tuning.method == "dora" else [])


def _base(plan: TrainingPlan, more: Sequence[str]) -> list[str]:
    if not plan.tuning.base_weights:
        return []
    if plan.tuning.base_weights == "int8":
        return ["--load_in_8bit"]
    kind, _, twice = plan.tuning.base_weights.partition("-")
    words = ["--load_in_4bit", f"--bnb_4bit_quant_type {kind}", *(["--use_bnb_nested_quant"] if twice else [])]
    return [*words, *more]
