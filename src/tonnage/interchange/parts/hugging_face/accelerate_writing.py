"""Accelerate's config, written from a plan.

Source: accelerate 1.15, accelerate/commands/config/{cluster,config_args}.py.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.hugging_face.zero_writing import NVME
from tonnage.interchange.planned_run import PlannedRun
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed
from tonnage.spec import TrainingPlan

KINDS = {
    "fsdp2": "FSDP",
    "deepspeed": "DEEPSPEED",
    "ddp": "MULTI_GPU",
    "transformers": "NO",
    "megatron": "MEGATRON_LM",
}
PRECISIONS = {"bf16-mixed": "bf16", "fp16-mixed": "fp16", "fp32": "no", "fp8-te": "fp8", "fp8-torchao": "fp8"}
BACKENDS = {"fp8-te": "TE", "fp8-torchao": "AO"}
SAYS = frozenset(("runtime", "precision", "zero_stage", "offload_optimizer", "offload_parameters"))


def fills(verb: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """The model is one of transformers, whose tensor ranks keep norms and residuals whole."""
    runtime = question.get("runtime") or "fsdp2"
    filled: dict[str, Any] = {"model_code": "transformers"} if runtime == "fsdp2" else {}
    if (question.get("tensor_parallel_size") or 1) != 1 and runtime in ("fsdp2", "deepspeed"):
        filled["sequence_parallel"] = False
    return filled


def write(w: PlannedRun) -> str:
    """The config. InvalidInput for what it has no words for."""
    assert w.training is not None
    plan = w.training
    kind = _chosen("runtime", plan.runtime, KINDS)
    if plan.runtime == "fsdp2" and plan.model_code not in ("transformers", ""):
        raise InvalidInput("Accelerate runs models of transformers: leave --model-code out.")
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "distributed_type": kind,
        "downcast_bf16": "no",
        **SECTIONS.get(kind, lambda _: {})(plan),
        "machine_rank": 0,
        "main_training_function": "main",
        "mixed_precision": _chosen("precision", plan.precision, PRECISIONS),
        "num_machines": w.cluster.num_nodes,
        "num_processes": w.cluster.size,
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": False,
    }
    if plan.precision in BACKENDS:
        config["fp8_config"] = {"backend": BACKENDS[plan.precision]}
    return "".join(_lines(config))


def _fsdp(plan: TrainingPlan) -> dict[str, Any]:
    offloads = plan.offload.offload_parameters == "cpu"
    section = {
        "fsdp_activation_checkpointing": plan.recompute == "full",
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_cpu_ram_efficient_loading": True,
        "fsdp_offload_params": offloads,
        "fsdp_reshard_after_forward": plan.zero_stage == 3,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_version": 2,
    }
    sizes = {
        "dp_replicate_size": int(plan.replicate_size),
        "dp_shard_size": int(plan.data_parallel_size) // int(plan.replicate_size),
        "tp_size": int(plan.tensor_parallel_size),
        "cp_size": int(plan.context_parallel_size),
    }
    if plan.pipeline_parallel_size != 1 or plan.expert_parallel_size != 1:
        raise InvalidInput("Accelerate's FSDP has no pipeline stages and no expert ranks: both must be 1.")
    named = {f"parallelism_config_{name}": size for name, size in sizes.items()}
    is_mesh = any(size != 1 for name, size in sizes.items() if name != "dp_shard_size")
    return {"fsdp_config": section, **({"parallelism_config": named} if is_mesh else {})}


def _deepspeed(plan: TrainingPlan) -> dict[str, Any]:
    optimizer, parameters = plan.offload.offload_optimizer, plan.offload.offload_parameters
    section: dict[str, Any] = {
        "deepspeed_multinode_launcher": "standard",
        "offload_optimizer_device": optimizer,
        **({"offload_optimizer_nvme_path": NVME} if optimizer == "nvme" else {}),
        "offload_param_device": parameters,
        **({"offload_param_nvme_path": NVME} if parameters == "nvme" else {}),
        "zero3_init_flag": plan.zero_stage == 3,
        "zero_stage": plan.zero_stage,
    }
    if plan.zero_stage == 3:
        section["zero3_save_16bit_model"] = bool(plan.deepspeed.stage3_gather_16bit_weights_on_model_save)
    return {"deepspeed_config": section}


def _megatron(plan: TrainingPlan) -> dict[str, Any]:
    if plan.zero_stage > 1:
        raise InvalidInput("Accelerate's Megatron-LM has ZeRO stages 0 and 1. Got {stage}.", stage=plan.zero_stage)
    section: dict[str, Any] = {
        "tp_degree": int(plan.tensor_parallel_size),
        "pp_degree": int(plan.pipeline_parallel_size),
        "context_parallel_size": int(plan.context_parallel_size),
        "expert_model_parallel_size": int(plan.expert_parallel_size),
        "num_micro_batches": int(plan.num_microbatches),
        "sequence_parallelism": bool(plan.sequence_parallel) and plan.tensor_parallel_size != 1,
        "use_distributed_optimizer": plan.zero_stage == 1,
        "optimizer_cpu_offload": plan.offload.offload_optimizer == "cpu",
    }
    if plan.recompute in ("full", "selective"):
        section["recompute_granularity"] = plan.recompute
    return {"megatron_lm_config": {f"megatron_lm_{name}": value for name, value in section.items()}}


SECTIONS = {"FSDP": _fsdp, "DEEPSPEED": _deepspeed, "MEGATRON_LM": _megatron}


def _lines(config: Mapping[str, Any]) -> list[str]:
    """YAML of two levels: words that YAML would read as something else stand in quotes."""
    lines = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            lines.append(f"{name}:\n")
            lines += [f"  {inner}: {_scalar(text)}\n" for inner, text in value.items()]
        else:
            lines.append(f"{name}: {_scalar(value)}\n")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if value in ("no", "NO") else str(value)


def _chosen(option: str, value: str, known: Mapping[str, str]) -> str:
    if value not in known:
        raise InvalidInput(
            "Accelerate has no words for {option} {value}. It has {known}.",
            option=option,
            value=value,
            known=listed(known),
        )
    return known[value]
