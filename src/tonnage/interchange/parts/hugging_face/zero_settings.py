"""The keys of a DeepSpeed config, wherever it stands: in its own file, or inside training arguments or accelerate's
config.

Source: DeepSpeed 0.19.8, deepspeed/runtime/{config,constants,precision_config}.py, deepspeed/runtime/zero/
{config,offload_config}.py, deepspeed/runtime/tensor_parallel/config.py.
"""

from tonnage.interchange.parts.hugging_face.keys import assume_auto, expect, expect_section
from tonnage.interchange.parts.hugging_face.trainer_names import UNKNOWN_STATES
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer, read_batches, read_precision
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput, UnknownName

VERSION = "0.19"
ZERO = "zero_optimization"
STAGE = f"{ZERO}.stage"
# Names of the ZeRO section that are also options of ours: name -> stages in which it counts, its least value.
SIZES: dict[str, tuple[tuple[int, ...], int]] = {
    "reduce_bucket_size": ((1, 2, 3), 1),
    "allgather_bucket_size": ((1, 2, 3), 0),
    "sub_group_size": ((3,), 1),
    "stage3_prefetch_bucket_size": ((3,), 0),
    "stage3_max_live_parameters": ((3,), 0),
    "stage3_max_reuse_distance": ((3,), 0),
    "stage3_param_persistence_threshold": ((3,), 0),
    "zero_hpz_partition_size": ((3,), 1),
}
FILLED = {
    "reduce_bucket_size": "auto: hidden_size squared, as the Trainer of transformers 5.24 fills in",
    "stage3_prefetch_bucket_size": "auto: 0.9 of hidden_size squared, as the Trainer of transformers 5.24 fills in",
    "stage3_param_persistence_threshold": "auto: 10 times hidden_size, as the Trainer of transformers 5.24 fills in",
}
SWITCHES: dict[str, tuple[int, ...]] = {
    "overlap_comm": (1, 2, 3),
    "contiguous_gradients": (1, 2, 3),
    "stage3_gather_16bit_weights_on_model_save": (3,),
    "zero_quantized_weights": (3,),
    "zero_quantized_nontrainable_weights": (3,),
    "zero_quantized_gradients": (3,),
}
# Others of it, with the value that is harmless.
USUAL = {
    "reduce_scatter": True,
    "use_multi_rank_bucket_allreduce": True,
    "allgather_partitions": True,
    "legacy_stage1": False,
    "round_robin_gradients": False,
    "parameter_alignment": False,
    "memory_efficient_linear": True,
    "stage3_module_granularity_threshold": 0,
    "stage3_use_all_reduce_for_fetch_params": False,
    "stage3_allgather_sequential": False,
    "stage3_model_persistence_threshold": 9223372036854775807,
    "save_muon_momentum_buffer_in_memory": False,
    "mics_shard_size": -1,
    "mics_hierarchical_params_gather": False,
    "zeropp_loco_param": None,
}
ZERO_HARMLESS = names(
    "load_from_fp32_weights elastic_checkpoint ignore_unused_parameters override_module_apply compute_grad_norm "
    "log_trace_cache_warnings enable_sanity_checks pipeline_loading_checkpoint"
)
CHECKPOINTING = names(
    "partition_activations cpu_checkpointing contiguous_memory_optimization number_checkpoints "
    "synchronize_checkpoint_boundary profile"
)
OFFLOAD = names(
    "device nvme_path buffer_count buffer_size max_in_cpu pin_memory pipeline_read pipeline_write fast_init ratio "
    "super_offload cpuadam_cores_perc"
)
HARMLESS = names(
    "steps_per_print gradient_clipping wall_clock_breakdown memory_breakdown dump_state disable_python_gc log_level "
    "prescale_gradients gradient_predivide_factor gradient_allreduce_op dataloader_drop_last vocabulary_size "
    "seq_parallel_communication_data_type zero_allow_untested_optimizer use_data_before_expert_parallelism "
    "optimizer.legacy_fusion fp16.auto_cast fp16.loss_scale fp16.initial_scale_power fp16.loss_scale_window "
    "fp16.hysteresis fp16.consecutive_hysteresis fp16.min_loss_scale fp16.min_loss_scale_window "
    "fp16.initial_scale bf16.immediate_grad_update bf16.check_grad_overflow bf16.check_overflow bf16.loss_scale "
    "data_types.buffer_dtype data_types.keep_in_fp32_modules data_types.param_dtype bf16.auto_cast"
)
SECTIONS = names(
    "scheduler tensorboard wandb comet csv_monitor comms_logger flops_profiler timers checkpoint monitor_config "
    "nebula datastates_ckpt checkpoint_serialization"
)
# Sections that DeepSpeed 0.19 has no more, and others that are not estimated.
OLD = names("elasticity amp sparse_attention compression_training quantize_training eigenvalue curriculum_learning")
OLD += ("progressive_layer_drop", "graph_harvesting")
SWITCHED = {
    "autotuning": "what it chooses is not known: write it into the config",
    "data_efficiency": "parts of the data and layers are left out, which is not estimated",
    "hybrid_engine": "generation in the engine is not estimated",
    "weight_quantization": "weights quantised by DeepSpeed are not estimated",
    **dict.fromkeys(OLD, f"DeepSpeed {VERSION} has it no more, and it is not estimated"),
}
RENAMED = {
    "bfloat16": "bf16",
    f"{ZERO}.stage3_gather_fp16_weights_on_model_save": f"{ZERO}.stage3_gather_16bit_weights_on_model_save",
    f"{ZERO}.prefetch_bucket_size": f"{ZERO}.stage3_prefetch_bucket_size",
    f"{ZERO}.param_persistence_threshold": f"{ZERO}.stage3_param_persistence_threshold",
    f"{ZERO}.max_live_parameters": f"{ZERO}.stage3_max_live_parameters",
    f"{ZERO}.max_reuse_distance": f"{ZERO}.stage3_max_reuse_distance",
    f"{ZERO}.gather_16bit_weights_on_model_save": f"{ZERO}.stage3_gather_16bit_weights_on_model_save",
    f"{ZERO}.model_persistence_threshold": f"{ZERO}.stage3_model_persistence_threshold",
}


def known() -> list[str]:
    """Every key that is read."""
    zero = [*SIZES, *SWITCHES, *USUAL, *ZERO_HARMLESS, "stage", "cpu_offload", "cpu_offload_params"]
    zero += [f"{part}.{name}" for part in ("offload_optimizer", "offload_param") for name in OFFLOAD]
    other = ["optimizer.type", "bf16.enabled", "fp16.enabled", "torch_autocast.enabled", "torch_autocast.dtype"]
    other += ["bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states", "tensor_parallel.autotp_size"]
    other += ["data_types.grad_accum_dtype", "communication_data_type", "sequence_parallel_size"]
    other += [f"activation_checkpointing.{name}" for name in CHECKPOINTING]
    batches = ["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"]
    return [*batches, *other, *(f"{ZERO}.{name}" for name in zero), *HARMLESS]


def read_zero(r: Reading, at: str = "", trainer: Trainer | None = None) -> None:
    """All of a DeepSpeed config. `at`: what stands before its keys; `trainer`: the training arguments beside it."""
    r.question["runtime"] = "deepspeed"
    r.origins.setdefault("runtime", ())
    _rename(r, at)
    stage = _stage(r, at)
    ranks = _parallel(r, at)
    read_batches(r, at, ranks, trainer)
    read_precision(r, at, trainer)
    _optimizer(r, at, trainer is None)
    _sizes(r, f"{at}{ZERO}.", stage)
    _offload(r, f"{at}{ZERO}.", stage)
    expect(r, (f"{at}zero_force_ds_cpu_optimizer",), True, why="an optimizer of PyTorch on the host is slower")
    _checkpointing(r, f"{at}activation_checkpointing.", trainer is not None)
    _others(r, at)


def _rename(r: Reading, at: str) -> None:
    renamed = {f"{at}{old}": f"{at}{new}" for old, new in RENAMED.items()}
    for key in r.under(f"{at}bfloat16."):
        renamed[key] = f"{at}bf16.{key.removeprefix(f'{at}bfloat16.')}"
    r.rename(renamed)
    for old, new in (("cpu_offload", "offload_optimizer"), ("cpu_offload_param", "offload_param")):
        for key in (f"{at}{ZERO}.{old}", f"{at}{ZERO}.{old}s"):
            target = f"{at}{ZERO}.{new}.device"
            if key in r.values and target not in r.values:
                r.values[key] = "cpu" if r.flag(key) else "none"
                r.rename({key: target})
    r.rename({f"{at}{ZERO}.cpu_offload_use_pin_memory": f"{at}{ZERO}.offload_optimizer.pin_memory"})


def _stage(r: Reading, at: str) -> int:
    key, section = f"{at}{STAGE}", f"{at}{ZERO}"
    if isinstance(r.values.get(section), bool):  # as DeepSpeed of 2020 had it
        stage = int(r.values[section])
        r.put("zero_stage", stage, section, why="true is stage 1")
        return stage
    if r.values.get(section) is not None:
        raise r.wrong(section, "a section")
    if not r.has(key):
        r.assume(key, 0, "zero_stage", why=f"default of DeepSpeed {VERSION}")
        return 0
    stage = r.integer(key)
    if not 0 <= stage <= 3:
        raise r.wrong(key, "0, 1, 2 or 3")
    r.put("zero_stage", stage, key)
    return stage


def _parallel(r: Reading, at: str) -> int:
    """Ranks that see different sequences."""
    tensor = f"{at}tensor_parallel.autotp_size"
    split = 1
    if r.has(tensor):
        split = max(r.integer(tensor), 1)
        r.put("tensor_parallel_size", split, tensor)
        if split > 1:
            r.put("sequence_parallel", False, tensor)
    r.ignore([f"{at}tensor_parallel.preset_model", f"{at}tensor_parallel.dtype"])
    for key in r.under(f"{at}tensor_parallel."):
        if key not in (tensor, f"{at}tensor_parallel.preset_model"):
            expect(r, [key], False, 0, 1, why="how it divides the model is not estimated")
    _experts(r, f"{at}expert_parallel.")
    sequence = f"{at}sequence_parallel_size"
    if r.has(sequence) and r.integer(sequence) > 1:
        split *= r.integer(sequence)
        r.unsure(sequence, "ranks that share a sequence (Ulysses) are not estimated with DeepSpeed")
    r.ignore([sequence])
    ranks = r.num_accelerators
    if ranks % split:
        raise InvalidInput(
            "{file}: {key} must divide the {ranks} accelerators. Got {split}.",
            file=r.source.name,
            key=tensor,
            ranks=ranks,
            split=split,
        )
    return ranks // split


def _experts(r: Reading, section: str) -> None:
    if r.has(f"{section}enabled") and r.flag(f"{section}enabled") and r.has(f"{section}autoep_size"):
        r.put("expert_parallel_size", max(r.integer(f"{section}autoep_size"), 1), f"{section}autoep_size")
        r.ignore([f"{section}enabled", f"{section}preset_model"])
    else:
        expect_section(r, section.rstrip("."), "how it divides the experts is not known")


def _optimizer(r: Reading, at: str, alone: bool) -> None:
    from tonnage.numerics.optimizers import optimizer

    key = f"{at}optimizer.type"
    momentum = f"{at}optimizer.params.momentum"
    if r.has(key):
        name = r.text(key)
        name = {"muadam": "adam", "muadamw": "adamw", "musgd": "sgd"}.get(name.lower(), name)
        try:
            ours = optimizer(name).name
        except UnknownName:
            r.unsure(key, UNKNOWN_STATES)
        else:
            keys = [key, momentum] if r.has(momentum) and r.get(momentum) != 0 and ours == "sgd" else [key]
            r.put("optimizer", "sgd-momentum" if len(keys) > 1 else ours, *keys)
    elif alone:
        why = "no optimizer is named: AdamW, as the Trainer of transformers 5.24 makes it"
        r.assume(key, "AdamW", "optimizer", why=why)
        r.question["optimizer"] = "adamw"
    r.ignore([f"{at}optimizer.params.", f"{at}optimizer.params"])


def _sizes(r: Reading, section: str, stage: int) -> None:
    for name, (stages, least) in SIZES.items():
        key = f"{section}{name}"
        if not r.has(key):
            r.ignore([key])
        elif stage not in stages:
            r.ignore([key], why="counts in stage 3 alone" if stages == (3,) else "counts in stages 1 to 3")
        elif r.is_auto(key) and name in FILLED:
            assume_auto(r, key, "auto", name, why=FILLED[name])
        else:
            size = r.integer(key)
            if size < 0:
                raise r.wrong(key, "a number from 0")
            r.put(name, max(size, least), key)
    for name, stages in SWITCHES.items():
        key = f"{section}{name}"
        if not r.has(key) or stage not in stages:
            r.ignore([key], why="counts in stage 3 alone" if stages == (3,) and r.has(key) else "")
        elif name == "zero_quantized_nontrainable_weights" and r.question.get("method", "full") == "full":
            r.ignore([key], why="all weights train")
        elif name == "contiguous_gradients" and stage < 3 and not r.flag(key) and _place(r, section) != "none":
            r.put(name, True, key, why="DeepSpeed turns it on with offload_optimizer")
        else:
            r.put(name, r.flag(key), key)
    for name, usual in USUAL.items():
        expect(r, [f"{section}{name}"], usual, why="what it changes is not estimated")
    r.ignore([f"{section}{name}" for name in ZERO_HARMLESS])
    for part in ("zenflow", "leaf_module"):
        r.needs_default(f"{section}{part}", why="what it changes is not estimated")
        for key in r.under(f"{section}{part}."):
            r.unsure(key, "what it changes is not estimated")


def _place(r: Reading, section: str) -> str:
    key = f"{section}offload_optimizer.device"
    return str(r.choice(key, {"none": "none", "cpu": "cpu", "nvme": "nvme"}, "none")) if r.has(key) else "none"


def _offload(r: Reading, section: str, stage: int) -> None:
    for part, option, buffers in (
        ("offload_optimizer", "offload_optimizer", {"buffer_count": 4}),
        ("offload_param", "offload_parameters", {"buffer_count": 5, "buffer_size": 10**8, "max_in_cpu": 10**9}),
    ):
        inner = f"{section}{part}."
        device = f"{inner}device"
        place = r.choice(device, {"none": "none", "cpu": "cpu", "nvme": "nvme"}, "none")
        r.ignore([f"{section}{part}", f"{inner}nvme_path", f"{inner}fast_init"])
        if place == "none" or (part == "offload_param" and stage != 3):
            r.put(option, "none" if r.has(device) and place == "none" else None, device)
            r.ignore(r.under(inner), why="nothing is offloaded")
            continue
        r.put(option, place, device)
        expect(r, [f"{inner}pin_memory"], True, why="copies through pageable memory are slower than is estimated")
        for name, usual in buffers.items():
            if place == "nvme":
                expect(r, [f"{inner}{name}"], usual, why="buffers of another size are not estimated")
            r.ignore([f"{inner}{name}"], why="counts with nvme alone")
        for name in ("pipeline_read", "pipeline_write", "super_offload"):
            expect(r, [f"{inner}{name}"], False, why="how much time it saves is not estimated")
        expect(r, [f"{inner}cpuadam_cores_perc"], 0.8, why="the time of the update on fewer cores is not estimated")
        _ratio(r, f"{inner}ratio", place, stage)


def _ratio(r: Reading, key: str, place: str, stage: int) -> None:
    if not r.has(key):
        return
    ratio = r.number(key)
    if not 0 <= ratio <= 1:
        raise r.wrong(key, "a share from 0 to 1")
    if ratio == 1:
        r.ignore([key])
    elif place == "cpu" and stage == 3:
        r.put("optimizer_offload_fraction", ratio, key)
    else:
        raise r.wrong(key, "1: a part is offloaded to cpu in stage 3 alone")


def _checkpointing(r: Reading, section: str, trainer: bool) -> None:
    """It counts where a model calls deepspeed.checkpointing, which those of transformers do not."""
    for name in CHECKPOINTING:
        key = f"{section}{name}"
        if not trainer and name in CHECKPOINTING[:3] and r.has(key) and r.flag(key):
            r.unsure(key, "whether the model calls deepspeed.checkpointing is not known")
        else:
            r.ignore([key], why="models of transformers do not call deepspeed.checkpointing" if trainer else "")


def _others(r: Reading, at: str) -> None:
    r.ignore([f"{at}{name}" for name in HARMLESS])
    for section in SECTIONS:
        r.ignore([f"{at}{section}.", f"{at}{section}"])
    for section, why in SWITCHED.items():
        expect_section(r, f"{at}{section}", why)
    expect_section(r, f"{at}compile", "DeepCompile is not estimated", switch="deepcompile")
    r.ignore([f"{at}aio."], why="the disk's own rate is estimated")
    expect(r, (f"{at}managed_gradient_accumulation",), True, why="who accumulates gradients is not known")
    expect(r, (f"{at}disable_allgather", f"{at}sparse_gradients", f"{at}train_steps"), False, why="it is not estimated")
    expect(r, (f"{at}fp16.fp16_master_weights_and_grads",), False, why="fp16 masters are not estimated: fp32 are")
    for key in r.under(f"{at}pipeline."):
        expect(r, [key], False, 1, why="DeepSpeed's pipeline is not estimated")
