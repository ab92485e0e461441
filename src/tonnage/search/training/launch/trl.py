"""The command that trains adapters beside a model of transformers: TRL's, with peft, started by accelerate.

Sources: TRL 1.16, trl/trainer/{model_config,sft_config,dpo_config}.py and trl/accelerate_configs; accelerate 1.15, accelerate/commands/launch.py.
"""

from shlex import quote

from tonnage.architectures import Model
from tonnage.estimate.answer.launch_model import place
from tonnage.spec import TrainingPlan

METHODS, OBJECTIVES = ("lora", "dora"), ("sft", "dpo")
# TRL's files for accelerate. That of DeepSpeed's stage 2 stands for those below it, which are said: there is none of 0, and zero1 has one
# micro-batch a step, which no other number can stand beside.
CONFIGS = {"transformers": "single_gpu", "ddp": "multi_gpu", "fsdp2": "fsdp2", "deepspeed": "zero2"}
ATTENTION = {"sdpa": "sdpa", "eager": "eager", "flash": "flash_attention_2"}


def trains(plan: TrainingPlan) -> bool:
    """Whether it is such a plan: TRL has no layers that freeze, and the sizes of no model that is split."""
    whole = (
        plan.tensor_parallel_size == plan.pipeline_parallel_size == plan.context_parallel_size == plan.expert_parallel_size == 1
    )  # fmt: skip
    return plan.method in METHODS and plan.objective in OBJECTIVES and whole and plan.runtime in CONFIGS


def trl_command(model: Model, plan: TrainingPlan) -> list[str]:
    """The command, an option each."""
    config = "zero3" if plan.runtime == "deepspeed" and plan.zero_stage == 3 else CONFIGS[plan.runtime]
    made = [f"trl {plan.objective}", f"--accelerate_config {config}", f"--num_processes {plan.world_size}"]
    made += [f"--zero_stage {plan.zero_stage}"] if plan.runtime == "deepspeed" and plan.zero_stage < 2 else []
    made += ["--fsdp_reshard_after_forward false"] if plan.runtime == "fsdp2" and plan.zero_stage == 2 else []
    made += _offload(plan)
    made += [
        f"--model_name_or_path {quote(place(model))}",
        "--dataset_name DATASET",
        "--output_dir OUTPUT",
        "--dtype bfloat16",
    ]
    made += _adapters(plan)
    made += _base(plan)
    made += [
        f"--per_device_train_batch_size {plan.micro_batch_size}",
        f"--gradient_accumulation_steps {plan.num_microbatches}",
        f"--max_length {plan.sequence_length}",
        f"--gradient_checkpointing {'false' if plan.recompute == 'none' else 'true'}",  # TRL's own is true
    ]
    made += [f"--attn_implementation {ATTENTION[plan.attention]}"] if plan.attention in ATTENTION else []
    made += ["--packing"] if plan.packing else []
    return made + (["--use_liger_kernel"] if plan.liger else [])


def _adapters(plan: TrainingPlan) -> list[str]:
    made = ["--use_peft", f"--lora_r {plan.lora_rank}"]
    made.append(f"--lora_target_modules {plan.lora_targets.replace(',', ' ') or 'all-linear'}")
    made += [] if plan.lora_dropout else ["--lora_dropout 0.0"]  # TRL's own is 0.05
    return made + (["--use_dora"] if plan.method == "dora" else [])


def _base(plan: TrainingPlan) -> list[str]:
    if not plan.base_weights:
        return []
    if plan.base_weights == "int8":
        return ["--load_in_8bit"]
    kind, _, twice = plan.base_weights.partition("-")
    made = ["--load_in_4bit", f"--bnb_4bit_quant_type {kind}", *(["--use_bnb_nested_quant"] if twice else [])]
    # accelerate, utils/fsdp_utils.py: what is stored as bytes is kept whole on every accelerator
    return made + (["--bnb_4bit_quant_storage bfloat16"] if plan.runtime == "fsdp2" else [])


def _offload(plan: TrainingPlan) -> list[str]:
    if plan.runtime == "fsdp2":
        return ["--fsdp_offload_params true"] if plan.offload_parameters == "cpu" else []
    made = ["--offload_optimizer_device cpu"] if plan.offload_optimizer == "cpu" else []
    return made + (["--offload_param_device cpu"] if plan.offload_parameters == "cpu" else [])
