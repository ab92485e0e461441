"""Files of axolotl and LLaMA-Factory, written from a plan."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.interchange.parts.hugging_face.zero_writing import config_inside
from tonnage.interchange.parts.recipes.trainer_options import ADAPTERS, optimizer_word, refuse
from tonnage.interchange.planned_run import PlannedRun
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import option_name

# What trainers on transformers have no words for.
ALONE: Mapping[str, Sequence[Any]] = {
    "model_code": ("transformers", ""),
    "pipeline_parallel_size": (1,),
    "recompute": ("none", "full"),
    "compile": (False,),
    "float8": ("none",),
    "keep_outputs": (False,),
    "optimizer_in_backward": (False,),
    "loss": ("full", "chunked", "tiled"),
}
CUT = "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"
LIGER = "axolotl.integrations.liger.LigerPlugin"
KERNELS = {"flash": "flash_attention_2", "sdpa": "sdpa", "eager": "eager", "efficient": "xformers"}
TO_ADD = "# Yours to add: {names}.\n"
DROPOUT = 0.05  # where a plan says that there is some


def _runtimes(w: PlannedRun) -> tuple[str, ...]:
    """What a run is under that nothing shards depends on the number of accelerators."""
    return ("transformers" if w.cluster.size == 1 else "ddp", "fsdp2", "deepspeed")


def yaml_groups(groups: Sequence[Mapping[str, Any]]) -> str:
    """Groups of keys, a blank line between them; None and empty groups are left out."""
    import yaml

    texts = []
    for group in groups:
        written = {name: value for name, value in group.items() if value is not None}
        if written:
            texts.append(yaml.safe_dump(written, sort_keys=False, default_flow_style=False, width=120))
    return "\n".join(texts)


def axolotl_yaml(w: PlannedRun) -> str:
    """axolotl's file: its keys as 0.21 has them."""
    plan = w.training
    assert plan is not None
    is_sharded = plan.runtime in ("fsdp2", "deepspeed")
    able = {"runtime": _runtimes(w), **ALONE, "method": ("full", "lora", "dora"), "objective": ("sft", "dpo", "grpo")}
    able |= {"attention": tuple(KERNELS), "base_weights": ("", "nf4-double", "int8"), "upcast_base": (False,)}
    able |= {"precision": _axolotl_recipes(plan)}
    if plan.runtime == "deepspeed":
        able["tensor_parallel_size"] = (1,)
    elif plan.tensor_parallel_size > 1:
        able["sequence_parallel"] = (False,)
    refuse(w, "axolotl", able)
    return TO_ADD.format(names="datasets, learning_rate, output_dir, and lora_alpha of adapters") + yaml_groups(
        [
            {"base_model": w.place},
            _axolotl_adapter(plan),
            _axolotl_objective(w),
            {
                "sequence_len": plan.sequence_length,
                "sample_packing": plan.packing,
                "attn_implementation": KERNELS[plan.kernels.attention or "sdpa"],
            },
            {
                "micro_batch_size": plan.micro_batch_size,
                "gradient_accumulation_steps": plan.num_microbatches,
                "max_steps": w.question.get("max_steps"),
                "optimizer": optimizer_word(plan, ("adamw_torch_fused", "adamw_torch", "adamw_8bit"), "axolotl"),
                "dataloader_num_workers": plan.data_loader_workers or None,
            },
            {**_axolotl_types(plan), "gradient_checkpointing": plan.recompute == "full", **_offloading(plan)},
            _axolotl_loss(plan),
            _axolotl_sharding(w, plan) if is_sharded else {},
        ]
    )


def _axolotl_recipes(plan: Any) -> tuple[str, ...]:
    trains_all = plan.tuning.method not in ADAPTERS
    if not trains_all:
        return ("bf16-mixed", "fp16-mixed", "bf16", "fp32", "tf32")
    return ("bf16-mixed", "fp16-mixed") if plan.runtime == "deepspeed" else ("bf16", "fp16", "fp32", "tf32")


def _axolotl_types(plan: Any) -> dict[str, Any]:
    recipe = plan.precision
    if recipe == "bf16" and plan.tuning.method in ADAPTERS:
        return {"bfloat16": True}
    kind = recipe.removesuffix("-mixed")
    types = {"bf16": kind == "bf16"}
    if kind == "fp16":
        types["fp16"] = True
    if kind in ("fp32", "tf32"):
        types |= {"fp16": False, "tf32": kind == "tf32"}
    return types


def _offloading(plan: Any) -> dict[str, Any]:
    place = plan.offload.offload_activations
    return {} if place == "none" else {"activation_offloading": "disk" if place == "nvme" else True}


def _axolotl_adapter(plan: Any) -> dict[str, Any]:
    tuning = plan.tuning
    if tuning.method == "full":
        return {}
    targets = tuning.lora_targets
    return {
        "adapter": "qlora" if tuning.base_weights.startswith("nf4") and tuning.method == "lora" else "lora",
        "load_in_4bit": True if tuning.base_weights.startswith("nf4") else None,
        "load_in_8bit": True if tuning.base_weights == "int8" else None,
        "lora_r": tuning.lora_rank,
        "lora_dropout": DROPOUT if tuning.lora_dropout else 0.0,
        "lora_target_linear": True if not targets else None,
        "lora_target_modules": targets.split(",") if targets else None,
        "peft_use_dora": True if tuning.method == "dora" else None,
    }


def _axolotl_objective(w: PlannedRun) -> dict[str, Any]:
    assert w.training is not None
    kind, share = w.training.post_training.objective, w.training.post_training.engine_memory_share
    if kind == "sft":
        return {}
    engine = {"trl": {"use_vllm": True, "vllm_mode": "colocate"}, "vllm": {"gpu_memory_utilization": share}}
    return {"rl": kind, **(engine if share else {})}


def _axolotl_loss(plan: Any) -> dict[str, Any]:
    if plan.kernels.liger:
        names = ("liger_rope", "liger_rms_norm", "liger_glu_activation", "liger_fused_linear_cross_entropy")
        return {"plugins": [LIGER], **dict.fromkeys(names, True)}
    return {"plugins": [CUT], "cut_cross_entropy": True} if plan.loss == "chunked" else {}


def _axolotl_sharding(w: PlannedRun, plan: Any) -> dict[str, Any]:
    if plan.runtime == "deepspeed":
        return {"deepspeed": config_inside(w, plan)}
    sizes = {
        "dp_replicate_size": plan.replicate_size,
        "tensor_parallel_size": plan.tensor_parallel_size,
        "context_parallel_size": plan.context_parallel_size,
        "expert_parallel_size": plan.expert_parallel_size,
    }
    written = {name: size for name, size in sizes.items() if size > 1}
    if written:
        written = {"dp_shard_size": plan.data_parallel_size // plan.replicate_size, **written}
    return {"fsdp_version": 2, "fsdp_config": fsdp2_config(plan), **written}


def fsdp2_config(plan: Any) -> dict[str, Any]:
    """The section of FSDP2, by the names that axolotl and transformers share."""
    return {
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "reshard_after_forward": plan.zero_stage == 3,
        "offload_params": plan.offload.offload_parameters == "cpu",
        "state_dict_type": "SHARDED_STATE_DICT",
    }


# ---- LLaMA-Factory.

STAGES = {"sft": "sft", "dpo": "dpo", "ppo": "ppo"}
FLASH = {"flash": "fa2", "sdpa": "sdpa", "eager": "disabled"}


def llama_factory_yaml(w: PlannedRun) -> str:
    """LLaMA-Factory's file: its keys as 0.9.5 has them."""
    plan = w.training
    assert plan is not None
    trains_all = plan.tuning.method in ("full", "freeze")
    able = {
        "runtime": _runtimes(w),
        **ALONE,
        "objective": ("sft", "dpo"),
        "attention": tuple(FLASH),
        "upcast_base": (False,),
    }
    able |= {"loss": ("full", "tiled"), "base_weights": ("", "nf4", "nf4-double", "fp4", "fp4-double", "int8")}
    able |= {
        "tensor_parallel_size": (1,),
        "context_parallel_size": (1,),
        "expert_parallel_size": (1,),
        "replicate_size": (1,),
    }
    able |= {"precision": ("bf16-mixed", "fp16-mixed", "fp32") if trains_all else ("bf16-mixed", "fp16-mixed")}
    if trains_all and plan.runtime in ("transformers", "ddp"):
        able["precision"] = ("bf16-mixed", "fp16-mixed", "bf16", "fp32")
    able["offload_activations"] = ("none", "cpu") if plan.recompute == "full" else ("none",)
    if plan.runtime != "deepspeed":  # the allocator's settings are those of llamafactory-cli
        able["expandable_segments"] = (plan.runtime != "transformers",)
    refuse(w, "LLaMA-Factory", able)
    if plan.packing and plan.micro_batch_size > 1:
        raise InvalidInput(
            "LLaMA-Factory packs with {option} 1 alone. Got {got}.",
            option=option_name("micro_batch_size"),
            got=plan.micro_batch_size,
        )
    return TO_ADD.format(names="dataset, template, learning_rate and output_dir") + yaml_groups(
        [
            {"model_name_or_path": w.place, "flash_attn": FLASH[plan.kernels.attention or "sdpa"], **_liger(plan)},
            {"stage": STAGES[plan.post_training.objective], "do_train": True, **_finetuning(plan)},
            {
                "cutoff_len": plan.sequence_length,
                "packing": True if plan.packing else None,
                "neat_packing": True if plan.packing else None,
                "dataloader_num_workers": plan.data_loader_workers or None,
            },
            {"max_steps": w.question.get("max_steps")},
            {
                "per_device_train_batch_size": plan.micro_batch_size,
                "gradient_accumulation_steps": plan.num_microbatches,
                "optim": optimizer_word(plan, ("adamw_torch_fused", "adamw_torch", "adamw_8bit"), "LLaMA-Factory"),
                "disable_gradient_checkpointing": True if plan.recompute == "none" else None,
                "use_unsloth_gc": True if plan.offload.offload_activations == "cpu" else None,
                **_trainer_types(plan),
            },
            _trainer_sharding(w, plan),
        ]
    )


def _liger(plan: Any) -> dict[str, Any]:
    return {"enable_liger_kernel": True} if plan.kernels.liger else {}


def _finetuning(plan: Any) -> dict[str, Any]:
    tuning = plan.tuning
    if tuning.method == "full":
        return {"finetuning_type": "full"}
    if tuning.method == "freeze":
        return {"finetuning_type": "freeze", "freeze_trainable_layers": tuning.trainable_layers}
    base = tuning.base_weights
    kind, _, twice = base.partition("-")
    four_bits = bool(base) and base != "int8"
    return {
        "finetuning_type": "lora",
        "lora_rank": tuning.lora_rank,
        "lora_target": tuning.lora_targets or "all",
        "lora_dropout": DROPOUT if tuning.lora_dropout else None,
        "use_dora": True if tuning.method == "dora" else None,
        "quantization_bit": 8 if base == "int8" else 4 if base else None,
        "quantization_type": kind if four_bits else None,
        "double_quantization": bool(twice) if four_bits else None,
    }


def _trainer_types(plan: Any) -> dict[str, Any]:
    if plan.precision == "bf16":
        return {"pure_bf16": True}
    return {"bf16": plan.precision == "bf16-mixed", "fp16": True if plan.precision == "fp16-mixed" else None}


def _trainer_sharding(w: PlannedRun, plan: Any) -> dict[str, Any]:
    if plan.runtime == "deepspeed":
        return {"deepspeed": config_inside(w, plan)}
    if plan.runtime != "fsdp2":
        return {}
    config = {**fsdp2_config(plan), "cpu_offload": plan.offload.offload_parameters == "cpu", "version": 2}
    config.pop("offload_params")
    return {"fsdp": True, "fsdp_config": config}
