"""TrainingArguments of transformers, wherever they stand: a file, a command, or TRL's configs, which add to them.

Source: transformers 5.24, transformers/training_args.py.
"""

from tonnage.interchange.parts.hugging_face.keys import default_of, expect
from tonnage.interchange.parts.hugging_face.trainer_names import OPTIMIZERS, UNKNOWN_STATES
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.kernel.message import Message

VERSION = "5.24"
OLDER = "4.57"  # its last release with the names that 5 has no more
LIGER = ("transformers", "ddp")  # runtimes of ours that have these kernels
RENAMED = {
    "activation_checkpointing": "gradient_checkpointing",
    "activation_checkpointing_kwargs": "gradient_checkpointing_kwargs",
    "evaluation_strategy": "eval_strategy",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "use_liger": "use_liger_kernel",
    "group_by_length": "train_sampling_strategy",
}
# Names that 5 has no more.
OLD = names(
    "evaluation_strategy per_gpu_train_batch_size per_gpu_eval_batch_size overwrite_output_dir logging_dir "
    "warmup_ratio half_precision_backend fp16_backend fp16_opt_level no_cuda use_mps_device save_safetensors "
    "group_by_length push_to_hub_model_id push_to_hub_organization push_to_hub_token past_index ray_scope "
    "tpu_num_cores tpu_metrics_debug use_ipex jit_mode_eval adafactor torchdynamo sharded_ddp "
    "fsdp_min_num_params fsdp_transformer_layer_cls_to_wrap include_inputs_for_metrics "
    "include_tokens_per_second mp_parameters dispatch_batches split_batches"
)
HARMLESS = names(
    "output_dir learning_rate lr_scheduler_type lr_scheduler_kwargs warmup_steps warmup_ratio weight_decay "
    "adam_beta1 adam_beta2 adam_epsilon average_tokens_across_devices max_grad_norm "
    "bf16_full_eval fp16_full_eval activation_checkpointing_kwargs gradient_checkpointing_kwargs use_cache "
    "logging_strategy logging_steps logging_first_step log_on_each_node logging_nan_inf_filter logging_dir "
    "include_num_input_tokens_seen log_level log_level_replica disable_tqdm report_to run_name project "
    "trackio_space_id trackio_bucket_id trackio_static_space_id eval_steps eval_delay prediction_loss_only "
    "eval_on_start eval_do_concat_batches eval_use_gather_object eval_accumulation_steps include_for_metrics "
    "batch_eval_metrics save_only_model save_strategy save_steps save_on_each_node save_total_limit "
    "enable_jit_checkpoint push_to_hub hub_token hub_private_repo hub_model_id hub_strategy hub_always_push "
    "hub_revision load_best_model_at_end metric_for_best_model greater_is_better ignore_data_skip "
    "restore_callback_states_from_checkpoint seed data_seed dataloader_drop_last dataloader_pin_memory "
    "dataloader_persistent_workers dataloader_prefetch_factor dataloader_multiprocessing_context "
    "dataloader_in_order remove_unused_columns label_names train_sampling_strategy length_column_name "
    "ddp_broadcast_buffers ddp_static_graph ddp_backend ddp_timeout skip_memory_metrics do_train "
    "do_eval do_predict resume_from_checkpoint local_rank overwrite_output_dir save_safetensors debug "
    "push_to_hub_model_id push_to_hub_organization push_to_hub_token past_index ray_scope tpu_num_cores "
    "tpu_metrics_debug include_inputs_for_metrics include_tokens_per_second half_precision_backend fp16_backend "
    "fp16_opt_level log_completions mp_parameters torch_compile_backend torch_compile_mode wandb_project"
)
DECIDING = names(
    "per_device_train_batch_size gradient_accumulation_steps num_train_epochs max_steps optim bf16 fp16 tf32 "
    "gradient_checkpointing torch_compile use_liger_kernel dataloader_num_workers deepspeed fsdp fsdp_config "
    "eval_strategy per_device_eval_batch_size auto_find_batch_size neftune_noise_alpha label_smoothing_factor "
    "torch_empty_cache_steps use_cpu accelerator_config parallelism_config ddp_find_unused_parameters "
    "ddp_bucket_cap_mb full_determinism activation_checkpointing optim_args optim_target_modules liger_kernel_config"
)
# Names that hardly any other tool has.
SIGNS = names(
    "per_device_train_batch_size per_device_eval_batch_size num_train_epochs save_total_limit lr_scheduler_type "
    "warmup_ratio save_strategy eval_strategy evaluation_strategy logging_strategy report_to fsdp_config "
    "gradient_checkpointing_kwargs ddp_timeout overwrite_output_dir remove_unused_columns dataloader_num_workers "
    "push_to_hub hub_model_id load_best_model_at_end optim adam_beta2 max_grad_norm do_train do_eval"
)


def known() -> list[str]:
    """Every name that is read."""
    return [*DECIDING, *HARMLESS, *RENAMED]


def signs(names_there: set[str]) -> int:
    """How many of the names hardly any other tool has."""
    return len(names_there & set(SIGNS))


def rename(r: Reading) -> str:
    """Read older names; the release that the names are of."""
    version = OLDER if any(name in r.values for name in OLD) else VERSION
    if isinstance(r.values.get("group_by_length"), bool):
        r.ignore(["group_by_length"])
    r.rename(RENAMED)
    if r.has("adafactor") and r.flag("adafactor"):
        r.values["adafactor"] = "adafactor"
        r.rename({"adafactor": "optim"})
    r.ignore(["adafactor"])
    return version if not r.asker.version else r.asker.version


def precision_of(r: Reading) -> str:
    """bf16, fp16 or "", as the flags say."""
    on = [name for name in ("bf16", "fp16") if r.has(name) and r.flag(name)]
    if len(on) > 1:
        raise r.wrong("fp16", "false where bf16 is true")
    return on[0] if on else ""


def read_batches(r: Reading, version: str, defaults: tuple[int, int] = (8, 1)) -> tuple[int, int]:
    """Sequences of a micro-batch and steps of accumulation, of which the micro-batches are as many."""
    why = default_of("transformers", version)
    numbers = []
    for key, option, default in (
        ("per_device_train_batch_size", "micro_batch_size", defaults[0]),
        ("gradient_accumulation_steps", "num_microbatches", defaults[1]),
    ):
        number = r.positive(key, default)
        if r.has(key):
            r.put(option, number, key)
        else:
            r.assume(key, number, option, why=why)
        numbers.append(number)
    return numbers[0], numbers[1]


def read_arguments(r: Reading, version: str, recomputes: bool) -> None:
    """All that stands beside batches, precision, DeepSpeed and FSDP. `recomputes`: whether the tool recomputes
    activations where nothing is said.
    """
    _recompute(r, version, recomputes)
    _optimizer(r, version)
    _kernels(r)
    _run(r)
    _evaluation(r)
    if r.has("dataloader_num_workers"):
        r.put("data_loader_workers", r.integer("dataloader_num_workers"), "dataloader_num_workers")
    read_others(r)


def read_others(r: Reading) -> None:
    """What decides no option: keys that change nothing, and those whose effect is not estimated."""
    expect(r, ["auto_find_batch_size"], False, why="the batch that it finds is not known: it is estimated as written")
    expect(r, ["neftune_noise_alpha"], why="noise on the embeddings is not estimated")
    expect(r, ["label_smoothing_factor"], 0, 0.0, why="the loss with smoothed labels holds more logits")
    expect(r, ["torch_empty_cache_steps"], why="the time to empty the cache is not estimated")
    expect(r, ["full_determinism", "use_ipex", "jit_mode_eval"], False, why="slower kernels are not estimated")
    if r.question["runtime"] == "ddp":
        expect(r, ["ddp_bucket_cap_mb"], 25, why="buckets of DDP of another size are not estimated")
    r.ignore(["ddp_bucket_cap_mb"])
    expect(r, ["ddp_find_unused_parameters"], False, why="the search for unused parameters takes time")
    expect(r, ["use_cpu", "no_cuda", "use_mps_device"], False, why="training on the host is not estimated")
    expect(r, ["torchdynamo", "sharded_ddp", "torch_compile_options"], "", why="it is not estimated")
    expect(
        r,
        ["accelerator_config.split_batches", "split_batches"],
        False,
        why="the batch is then that of all accelerators: write per_device_train_batch_size of one",
    )
    r.ignore(["accelerator_config", "accelerator_config.", "dispatch_batches"])
    r.ignore([*HARMLESS, *(f"{name}." for name in HARMLESS if name.endswith(("kwargs", "args", "config")))])


def _recompute(r: Reading, version: str, recomputes: bool) -> None:
    key = "gradient_checkpointing"
    newer = "activation_checkpointing"  # still there where both are
    if r.has(newer):
        r.put("recompute", "full" if r.flag(newer) else "none", newer)
        r.ignore([key], why="activation_checkpointing counts")
    elif r.has(key):
        if r.flag(key):
            r.put("recompute", "full", key)
        elif "recompute" in r.question:
            r.ignore([key], why="FSDP recomputes")
        else:
            r.put("recompute", "none", key)
    elif "recompute" not in r.question:
        value = "full" if recomputes else "none"
        why = default_of("TRL", "1.16") if recomputes else default_of("transformers", version)
        r.assume(key, recomputes, "recompute", why=why)
        r.question["recompute"] = value


def _optimizer(r: Reading, version: str) -> None:
    is_low_rank = r.text("optim", "").lower().startswith(("galore", "apollo"))
    if not is_low_rank:
        r.ignore(["optim_args", "optim_target_modules"])
    if "optimizer" in r.question:
        r.ignore(["optim", "optim_args", "optim_target_modules"], why="the DeepSpeed config names the optimizer")
        return
    if not r.has("optim"):
        r.assume("optim", "adamw_torch_fused", "optimizer", why=default_of("transformers", version))
        r.question["optimizer"] = "adamw"
        return
    name = r.text("optim").lower()
    if name in OPTIMIZERS:
        ours, kind = OPTIMIZERS[name]
        r.put("optimizer", ours, "optim")
        if kind not in ("", "fused") and r.question["runtime"] != "deepspeed":
            r.put("optimizer_implementation", kind, "optim")
    else:
        r.unsure("optim", UNKNOWN_STATES)
    if is_low_rank:
        why = "the rank and the matrices of it are estimated as usual"
        expect(r, ["optim_args", "optim_target_modules"], "", why=why)


def _kernels(r: Reading) -> None:
    key = "use_liger_kernel"
    if r.has(key) and r.flag(key):
        if r.question["runtime"] in LIGER:
            r.put("liger", True, key)
            for kernel_key in ("liger_kernel_config", *r.under("liger_kernel_config.")):
                expect(r, [kernel_key], True, why="single kernels of Liger are not estimated: all of them are")
        else:
            r.unsure(key, Message("Liger's kernels are not estimated with {runtime}", runtime=r.question["runtime"]))
    r.ignore([key, "liger_kernel_config", "liger_kernel_config."])
    if r.has("torch_compile") and r.flag("torch_compile"):
        r.unsure("torch_compile", "compiled models of transformers are not estimated")
    r.ignore(["torch_compile"])
    if r.has("tf32") and r.flag("tf32") and r.question.get("precision") == "fp32":
        r.put("precision", "tf32", "tf32", *r.origins.get("precision", ()))
    r.ignore(["tf32"])


def _run(r: Reading) -> None:
    """How long it trains."""
    if r.has("max_steps") and r.integer("max_steps") > 0:
        r.put("max_steps", r.integer("max_steps"), "max_steps")
        r.ignore(["num_train_epochs"], why="max_steps counts")
    r.ignore(["max_steps", "num_train_epochs"], why="the size of the data set is not known")


def _evaluation(r: Reading) -> None:
    """An evaluation holds no gradients, but logits of its whole batch."""
    strategy, size = "eval_strategy", "per_device_eval_batch_size"
    often = r.text(strategy, "no") not in ("no", "false")
    sequences = r.integer(size, 8)
    if often and sequences > r.integer("per_device_train_batch_size", 8):
        why = Message(
            "evaluation with {sequences} sequences at once, more than training has, may need more memory",
            sequences=sequences,
        )
        r.unsure(size if r.has(size) else strategy, why)
    r.ignore([strategy, size])
