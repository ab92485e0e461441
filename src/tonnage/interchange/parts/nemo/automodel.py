"""NeMo Automodel's YAML: nemo-automodel 0.7, nemo_automodel/recipes and nemo_automodel/components."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Source
from tonnage.kernel.message import Message

MODELS = (
    "model.pretrained_model_name_or_path",
    "model.config.pretrained_model_name_or_path",
    "model.config.name_or_path",
)
RENAMED = {
    "packed_sequence_size": "packed_sequence.packed_sequence_size",
    "dataset.seq_length": "dataset.seq_len",
    "distributed.pipeline_parallel_size": "distributed.pp_size",
    "distributed.tensor_parallel_size": "distributed.tp_size",
    "distributed.context_parallel_size": "distributed.cp_size",
    "distributed.expert_parallel_size": "distributed.ep_size",
    "autopipeline.pp_schedule": "distributed.pipeline.pp_schedule",
    "autopipeline.pp_microbatch_size": "distributed.pipeline.pp_microbatch_size",
    "autopipeline.layers_per_stage": "distributed.pipeline.layers_per_stage",
    "parallelizer.activation_checkpointing": "distributed.activation_checkpointing",
}
SIZES = {
    "distributed.tp_size": "tensor_parallel_size",
    "distributed.cp_size": "context_parallel_size",
    "distributed.pp_size": "pipeline_parallel_size",
    "distributed.ep_size": "expert_parallel_size",
}
SCHEDULES = {
    "1f1b": "1f1b",
    "interleaved1f1b": "interleaved-1f1b",
    "gpipe": "gpipe",
    "interleavedzerobubble": "interleaved-zero-bubble",
}
OPTIMIZERS = {
    "torch.optim.Adam": "adamw",
    "torch.optim.AdamW": "adamw",
    "torch.optim.SGD": "sgd-momentum",
    "transformer_engine.pytorch.optimizers.FusedAdam": "adamw",
    "transformer_engine.pytorch.optimizers.fused_adam.FusedAdam": "adamw",
}
LOSSES = ("MaskedCrossEntropy", "TEParallelCrossEntropy", "ChunkedCrossEntropy", "FusedLinearCrossEntropy")
IGNORED = (
    "seed",
    "recipe",
    "recipe.",
    "dist_env.",
    "rng.",
    "checkpoint.",
    "wandb.",
    "mlflow.",
    "comet.",
    "benchmark.",
    "validation_dataset.",
    "validation_dataloader.",
    "lr_scheduler.",
    "loss_fn.",
    "optimizer.",
    "slurm.",
    "ci.",
    "logger.",
    "tokenizer.",
    "dataset.",
    "dataloader.",
    "nsys.",
    "freeze_config.",
    "moe_metrics.",
)
IGNORED_KEYS = (
    *(f"step_scheduler.{name}" for name in ("ckpt_every_steps", "val_every_steps", "num_epochs", "gc_every_steps")),
    *(f"step_scheduler.{name}" for name in ("log_remote_every_steps", "save_checkpoint_every_epoch", "max_epochs")),
    *(f"model.{name}" for name in ("trust_remote_code", "is_meta_device", "force_hf", "output_hidden_states")),
    *(f"peft.{name}" for name in ("alpha", "use_triton", "dropout_position", "lora_A_init", "exclude_modules")),
    *(f"distributed.pipeline.{name}" for name in ("scale_grads_in_schedule", "round_virtual_stages_to_pp_multiple")),
    *(f"distributed.pipeline.{name}" for name in ("dtype", "patch_inner_model", "patch_causal_lm_model")),
    *(f"autopipeline.{name}" for name in ("scale_grads_in_schedule", "round_virtual_stages_to_pp_multiple")),
    *(f"autopipeline.{name}" for name in ("patch_inner_model", "patch_causal_lm_model", "dtype")),
    "autopipeline._target_",
    "parallelizer._target_",
    "packed_sequence.split_across_pack",
    "model.torch_dtype",
    "run.",
    "distributed.dp_size",
    "distributed.offload_policy",
    "distributed.defer_fsdp_grad_sync",
)


def is_tree(tree: Mapping[str, Any]) -> bool:
    """Whether a tree is a config of Automodel."""
    scheduler, model = tree.get("step_scheduler"), tree.get("model")
    targets = str(model) + str(tree.get("recipe"))
    return isinstance(scheduler, Mapping) and (
        isinstance(tree.get("distributed"), Mapping) or "nemo_automodel" in targets
    )


def tree_of(source: Source) -> dict[str, Any]:
    return flattened(source.tree)


def read_config(r: Reading) -> None:
    """Read a run of fine-tuning or pre-training."""
    r.rename(RENAMED)
    _machines(r)
    for key in MODELS:
        if r.has(key):
            r.put("model", r.text(key), key)
    _sharding(r)
    _batch(r)
    _method(r)
    _step(r)
    _rest(r)


def _size(r: Reading, key: str, default: int = 1) -> int:
    return default if str(r.get(key)).lower() in ("none", "auto") else r.size(key, default)


def _machines(r: Reading) -> None:
    nodes, per_node = _size(r, "slurm.nodes", 0), _size(r, "slurm.ntasks_per_node", 0)
    nodes, per_node = _size(r, "run.nnodes", nodes), _size(r, "run.nproc_per_node", per_node)
    r.count_machines(nodes=nodes, per_node=per_node)
    r.put("on", None, "slurm.nodes", "slurm.ntasks_per_node", "run.nnodes", "run.nproc_per_node")


def _sharding(r: Reading) -> None:
    """The strategy, and the sizes of its groups."""
    target = str(r.get("distributed._target_", ""))
    strategy = str(r.get("distributed.strategy", "")).lower() or _of_target(target)
    if strategy not in ("fsdp2", "ddp"):
        r.unsure("distributed.strategy", "FSDP2 and DDP are estimated")
        r.unsure("distributed._target_", "FSDP2 and DDP are estimated")
    runtime = "ddp" if strategy == "ddp" else "fsdp2"
    keys = [key for key in ("distributed.strategy", "distributed._target_") if r.has(key)]
    r.put("runtime", runtime, *keys)
    if not keys:
        r.assume("distributed.strategy", "fsdp2", "runtime")
    for key, option in SIZES.items():
        size = _size(r, key)
        r.put(option, size if size > 1 else None, key)
    if r.has("distributed.sequence_parallel"):
        cuts = r.flag("distributed.sequence_parallel")
        r.put(
            "sequence_parallel", cuts if _size(r, "distributed.tp_size") > 1 else None, "distributed.sequence_parallel"
        )
    groups = _size(r, "distributed.dp_replicate_size")
    r.put("replicate_size", groups if groups > 1 else None, "distributed.dp_replicate_size")
    if r.has("distributed.activation_checkpointing"):
        checkpointing = str(r.get("distributed.activation_checkpointing")).lower()
        if checkpointing == "selective":
            r.unsure("distributed.activation_checkpointing", "all layers or none recomputed are estimated")
        r.put(
            "recompute", "full" if checkpointing in ("true", "full") else "none", "distributed.activation_checkpointing"
        )
    if r.has("distributed.pipeline.pp_schedule"):
        known = str(r.get("distributed.pipeline.pp_schedule")).lower()
        several = _size(r, "distributed.pp_size") > 1
        if several and known not in SCHEDULES:
            r.unsure("distributed.pipeline.pp_schedule", "this schedule is not estimated")
        r.put("pipeline_schedule", SCHEDULES.get(known) if several else None, "distributed.pipeline.pp_schedule")
    if _size(r, "distributed.pp_size") > 1 and r.has("distributed.pipeline.layers_per_stage"):
        r.unsure("distributed.pipeline.layers_per_stage", "chunks of a stage are not read: say --virtual-pipeline-size")
    r.ignore(["distributed.pipeline.layers_per_stage"])


def _of_target(target: str) -> str:
    name = target.rpartition(".")[2]
    return {"FSDP2Manager": "fsdp2", "DDPManager": "ddp", "": "fsdp2"}.get(name, name.lower())


def _batch(r: Reading) -> None:
    length = "packed_sequence.packed_sequence_size"
    if r.has(length) and r.integer(length) > 0:
        r.put("sequence_length", _size(r, length), length)
        r.put("packing", True, length)
    elif r.has("dataset.seq_len"):
        r.put("sequence_length", _size(r, "dataset.seq_len"), "dataset.seq_len")
    else:
        r.notes.append(Message("No length of a sequence is said: the model's context is taken, at most 4096."))
    r.ignore([length])
    micro = "step_scheduler.local_batch_size"
    r.assume(micro, 1, "micro_batch_size")
    r.put("micro_batch_size", _size(r, micro) if r.has(micro) else None, micro)
    pipelined = "distributed.pipeline.pp_microbatch_size"
    if _size(r, "distributed.pp_size") > 1 and r.has(pipelined):
        r.put("micro_batch_size", _size(r, pipelined), pipelined)
    r.ignore([pipelined])
    total = "step_scheduler.global_batch_size"
    r.put("global_batch_size", _size(r, total) if r.has(total) else None, total)
    steps = "step_scheduler.max_steps"
    r.put("max_steps", _size(r, steps) if r.has(steps) else None, steps)


def _method(r: Reading) -> None:
    """All weights, or LoRA."""
    if not r.under("peft."):
        return
    target = str(r.get("peft._target_", ""))
    if target and "PeftConfig" not in target and "Lora" not in target:
        r.unsure("peft._target_", "adapters of LoRA are estimated")
    r.put("method", "lora", "peft._target_")
    r.put("lora_rank", _size(r, "peft.dim", 8), "peft.dim")
    r.assume("peft.dim", 8, "lora_rank")
    if r.has("peft.target_modules"):
        modules = r.get("peft.target_modules")
        names = modules if isinstance(modules, list) else [modules]
        plain = [str(name).strip("*.").rpartition(".")[2] for name in names]
        r.put("lora_targets", ",".join(plain), "peft.target_modules")
    r.put("lora_targets", None, "peft.match_all_linear")
    if r.has("peft.dropout"):
        r.put("lora_dropout", True if r.number("peft.dropout") > 0 else None, "peft.dropout")
    r.needs_default("peft.use_dora", False, why="DoRA of Automodel is not estimated")


def _step(r: Reading) -> None:
    """Precision, optimizer, loss and kernels."""
    dtype = str(r.get("model.torch_dtype", "bf16")).removeprefix("torch.").replace("bfloat16", "bf16")
    kinds = {"bf16": "bf16", "auto": "bf16", "float32": "bf16-mixed", "fp32": "bf16-mixed"}
    if dtype not in kinds:
        r.unsure("model.torch_dtype", "bf16 and fp32 are estimated")
    r.assume("model.torch_dtype", "bf16", "precision")
    r.put("precision", kinds.get(dtype, "bf16"), "model.torch_dtype")
    r.question["precision"] = kinds.get(dtype, "bf16")
    if r.under("peft.") and dtype in ("bf16", "auto"):
        r.question["precision"] = "bf16"
    key = "optimizer._target_"
    if r.has(key):
        name = r.text(key)
        if name in OPTIMIZERS:
            r.put("optimizer", OPTIMIZERS[name], key)
        else:
            r.unsure(key, "its states are not estimated")
    for name in ("optimizer.master_weights", "optimizer.use_decoupled_grad", "optimizer.store_param_remainders"):
        r.needs_default(name, why="master weights of the optimizer are not estimated")
    loss = str(r.get("loss_fn._target_", "")).rpartition(".")[2]
    if loss == "FusedLinearCrossEntropy":
        r.unsure("loss_fn._target_", "a loss that is fused with the head is not estimated")
    elif loss == "ChunkedCrossEntropy":
        r.put("loss", "chunked", "loss_fn._target_")
    attention = "model.attn_implementation"
    if r.has(attention):
        known = {"flash_attention_2": "flash", "flash_attention_3": "flash", "sdpa": "sdpa", "eager": "eager"}
        r.put("attention", r.choice(attention, known), attention)
    workers = "dataloader.num_workers"
    r.put("data_loader_workers", r.integer(workers) if r.has(workers) else None, workers)
    for section, why in (
        ("fp8.", "fp8 of Automodel is not estimated"),
        ("compile.", "a compiled step is not estimated"),
    ):
        enabled = f"{section}enabled"
        is_on = r.under(section) and r.flag(enabled, True) if r.has(enabled) else bool(r.under(section))
        for name in r.under(section):
            if is_on:
                r.unsure(name, why)
        r.ignore([section])
    for name in r.under("model.backend."):
        r.ignore([name], why="kernels of the model's code are estimated as transformers has them")
    for name in r.under("quantization."):
        r.unsure(name, "a quantised base is not estimated with FSDP2")


def _rest(r: Reading) -> None:
    r.needs_default("distributed.offload_policy", why="FSDP2's offloading is not read")
    r.needs_default(
        "model.use_liger_kernel", False, why="Liger's kernels are estimated with the runtime transformers alone"
    )
    r.put("model", None, "model.config._target_", "model._target_")
    for name in IGNORED:
        r.ignore([name])
    for name in IGNORED_KEYS:
        r.ignore([name])
    r.ignore([key for key, value in r.values.items() if value is None])
