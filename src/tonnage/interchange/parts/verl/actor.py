"""What veRL's keys say of the actor: how it is sharded, its adapters, recomputation and kernels."""

from tonnage.interchange.parts.verl.values import ACTOR, FSDP, MEGATRON, MODEL, ROLLOUT, TRANSFORMER, on, size
from tonnage.interchange.reading import Reading

OPTIMIZERS = {"adamw": "adamw", "adam": "adamw", "sgd": "sgd-momentum", "muon": "muon", "adamw8bit": "adamw-8bit"}


def read_adapters(r: Reading, is_megatron: bool) -> None:
    for name in (f"{MODEL}lora_rank", f"{MODEL}lora.rank"):
        if r.has(name) and r.integer(name) > 0:
            r.put("method", "lora", name)
            r.put("lora_rank", r.integer(name), name)
            targets = r.get(f"{MODEL}target_modules", "all-linear")
            text = (
                ",".join(map(str, targets)) if isinstance(targets, list) else str(targets).strip("[]").replace(" ", "")
            )
            r.put("lora_targets", None if text == "all-linear" else text.replace("'", ""), f"{MODEL}target_modules")
    r.ignore([f"{MODEL}lora_rank", f"{MODEL}lora.rank", f"{MODEL}target_modules", f"{MODEL}lora_alpha"])
    r.ignore(
        [f"{MODEL}lora.{name}" for name in ("alpha", "merge", "type", "adapter_path", "dropout", "target_modules")]
    )
    if is_megatron:
        r.ignore([f"{MODEL}lora."])


def read_fsdp(r: Reading) -> None:
    r.put("model_code", "transformers", f"{ACTOR}strategy")
    reshards = on(r, f"{FSDP}reshard_after_forward", True)
    r.put("zero_stage", 3 if reshards else 2, f"{FSDP}reshard_after_forward")
    group = r.integer(f"{FSDP}fsdp_size", -1) if r.has(f"{FSDP}fsdp_size") else -1
    if 0 < group < r.num_accelerators:
        if r.num_accelerators % group:
            raise r.wrong(f"{FSDP}fsdp_size", f"a divisor of {r.num_accelerators} accelerators")
        r.put("replicate_size", r.num_accelerators // group, f"{FSDP}fsdp_size")
    r.ignore([f"{FSDP}fsdp_size"])
    dtype = r.text(f"{FSDP}model_dtype", "fp32").removeprefix("torch.")
    r.assume(f"{FSDP}model_dtype", "fp32", "precision")
    precisions = {"fp32": "bf16-mixed", "float32": "bf16-mixed", "bf16": "bf16", "bfloat16": "bf16"}
    if dtype not in precisions:
        r.unsure(f"{FSDP}model_dtype", "fp32 and bf16 are estimated")
    r.put("precision", precisions.get(dtype, "bf16-mixed"), f"{FSDP}model_dtype")
    if r.text(f"{FSDP}dtype", "bfloat16") not in ("bfloat16", "bf16"):
        r.unsure(f"{FSDP}dtype", "products in bf16 are estimated")
    if on(r, f"{FSDP}offload_policy"):
        r.put("offload_parameters", "cpu", f"{FSDP}offload_policy")
        r.put("offload_optimizer", "cpu", f"{FSDP}offload_policy")
    why = "they come back to the accelerator for the step"
    r.ignore([f"{FSDP}param_offload", f"{FSDP}optimizer_offload"], why=why)
    sequence = size(r, f"{ACTOR}ulysses_sequence_parallel_size", 1)
    r.put("context_parallel_size", sequence if sequence > 1 else None, f"{ACTOR}ulysses_sequence_parallel_size")
    if r.has(f"{ACTOR}optim.optimizer"):
        _optimizer(r)
    r.ignore([f"{FSDP}offload_policy", f"{FSDP}dtype"])


def _optimizer(r: Reading) -> None:
    key = f"{ACTOR}optim.optimizer"
    name = r.text(key).lower()
    if name in OPTIMIZERS:
        r.put("optimizer", OPTIMIZERS[name], key)
    else:
        r.unsure(key, "its states are not estimated")


def read_megatron(r: Reading) -> None:
    sizes = {
        "tensor_model_parallel_size": "tensor_parallel_size",
        "pipeline_model_parallel_size": "pipeline_parallel_size",
        "context_parallel_size": "context_parallel_size",
        "expert_model_parallel_size": "expert_parallel_size",
        "expert_tensor_parallel_size": "expert_tensor_parallel_size",
        "virtual_pipeline_model_parallel_size": "virtual_pipeline_size",
    }
    for name, option in sizes.items():
        if r.has(MEGATRON + name):
            r.put(option, size(r, MEGATRON + name), MEGATRON + name)
    tensor = size(r, f"{MEGATRON}tensor_model_parallel_size", 1)
    if r.has(f"{MEGATRON}sequence_parallel"):
        r.put(
            "sequence_parallel",
            on(r, f"{MEGATRON}sequence_parallel") if tensor > 1 else None,
            f"{MEGATRON}sequence_parallel",
        )
    r.put(
        "zero_stage", int(on(r, f"{MEGATRON}use_distributed_optimizer", True)), f"{MEGATRON}use_distributed_optimizer"
    )
    why = "they come back to the accelerator for the step"
    r.ignore([f"{MEGATRON}param_offload", f"{MEGATRON}grad_offload", f"{MEGATRON}optimizer_offload"], why=why)
    r.question["precision"] = "bf16-mixed"
    r.origins["precision"] = ()
    if r.has(f"{ACTOR}optim.optimizer"):
        _optimizer(r)
    granularity = r.text(f"{TRANSFORMER}recompute_granularity") if r.has(f"{TRANSFORMER}recompute_granularity") else ""
    if granularity not in ("", "full", "selective"):
        raise r.wrong(f"{TRANSFORMER}recompute_granularity", "full or selective")
    r.put("recompute", granularity, f"{TRANSFORMER}recompute_granularity")
    count = size(r, f"{TRANSFORMER}recompute_num_layers", 1)
    if granularity == "full" and (count != 1 or r.text(f"{TRANSFORMER}recompute_method", "uniform") != "uniform"):
        for name in ("recompute_num_layers", "recompute_method"):
            r.unsure(TRANSFORMER + name, "recompute full is estimated with every layer recomputed on its own")
    r.ignore([f"{TRANSFORMER}{name}" for name in ("recompute_num_layers", "recompute_method", "attention_backend")])
    modules = r.get(f"{TRANSFORMER}recompute_modules")
    if granularity == "selective" and isinstance(modules, list):
        r.put("recompute_modules", ",".join(map(str, modules)), f"{TRANSFORMER}recompute_modules")
    r.ignore([f"{TRANSFORMER}recompute_modules"])
    for key in (f"{MEGATRON}use_megatron_fsdp", f"{MEGATRON}dynamic_context_parallel"):
        r.needs_default(key, "false", "False", why="it is not estimated")
    ends = {
        "num_layers_in_first_pipeline_stage": "first_stage_layers",
        "num_layers_in_last_pipeline_stage": "last_stage_layers",
    }
    for name, option in ends.items():
        if r.has(TRANSFORMER + name):
            r.put(option, size(r, TRANSFORMER + name), TRANSFORMER + name)
    r.ignore([f"{TRANSFORMER}apply_rope_fusion", f"{TRANSFORMER}gradient_accumulation_fusion"])


def read_model(r: Reading, is_megatron: bool) -> None:
    """Recomputation and kernels of the model of transformers."""
    key = f"{MODEL}enable_gradient_checkpointing"
    if not is_megatron:
        r.put("recompute", "full" if on(r, key, True) else "none", key)
        r.assume(key, True, "recompute")
        r.question["recompute"] = "full" if on(r, key, True) else "none"
    r.ignore([key], why="Megatron has a setting of its own")
    if on(r, f"{MODEL}enable_activation_offload"):
        r.put("offload_activations", "cpu", f"{MODEL}enable_activation_offload")
    r.ignore([f"{MODEL}enable_activation_offload"])
    kernels = "kernels of the model's code are estimated as transformers has them"
    for name in (f"{MODEL}use_liger", f"{MODEL}tiled_mlp.enabled", f"{MODEL}mtp.enable", f"{MODEL}mtp.enable_train"):
        r.needs_default(name, "false", "False", why=kernels)
    if not is_megatron and r.question.get("objective", "sft") != "sft":
        _logits(r)
    r.ignore([f"{MODEL}use_fused_kernels", f"{ACTOR}use_fused_kernels", f"{ACTOR}entropy_from_logits_with_chunking"])
    r.ignore([f"{ACTOR}entropy_from_logits_chunk_size", f"{ACTOR}entropy_checkpointing"])
    _overrides(r)
    r.ignore([f"{MODEL}use_remove_padding", f"{ACTOR}use_remove_padding"], why="sequences of full length are estimated")


def _logits(r: Reading) -> None:
    """Fused kernels take the loss in tiles; without them the logits of a micro-batch are held whole, with an entropy
    their gradients beside them (verl/workers/engine/fsdp/transformer_impl.py: prepare_model_outputs).
    """
    keys = [key for key in (f"{MODEL}use_fused_kernels", f"{ACTOR}use_fused_kernels") if r.has(key)]
    if any(on(r, key) for key in keys):
        r.put("loss", "tiled", *keys)
        return
    coefficient, switch = f"{ACTOR}entropy_coeff", f"{ACTOR}calculate_entropy"
    has_entropy = on(r, switch) or (r.has(coefficient) and r.number(coefficient, 0) != 0)
    r.put("loss", "full-entropy" if has_entropy else "full", *keys, *((coefficient, switch) if has_entropy else ()))
    r.assume(f"{MODEL}use_fused_kernels", value=False)
    key = f"{ACTOR}use_torch_compile"
    if has_entropy and not on(r, key, True):
        r.unsure(key, "an entropy that is compiled is estimated")
    key = f"{ROLLOUT}temperature"
    if r.has(key) and r.number(key, 1) != 1:
        r.unsure(key, "a copy of the logits that the temperature divides is not estimated")


def _overrides(r: Reading) -> None:
    """Fields of the model's config that the run changes: dropout and positions alone change nothing here."""
    section = f"{MODEL}override_config"
    if r.get(section):
        r.unsure(section, "another config than the model's own is not read")
    for key in r.under(f"{section}."):
        name = key.rpartition(".")[2]
        if any(word in name for word in ("dropout", "pdrop", "rope", "position", "attn_implementation")):
            r.ignore([key])
        else:
            r.unsure(key, "another config than the model's own is not read")
