"""LLaMA-Factory: its YAML and JSON, and `llamafactory-cli train`."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.hugging_face.keys import NOT_ESTIMATED
from tonnage.interchange.parts.hugging_face.trainer_names import put_attention, put_targets
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer as ZeroTrainer
from tonnage.interchange.parts.launching.training import TrainingLaunch, training_launch
from tonnage.interchange.parts.recipes.accelerate_sections import accelerate_values, read_accelerate
from tonnage.interchange.parts.recipes.shipped_deepspeed import LLAMA_FACTORY
from tonnage.interchange.parts.recipes.trainer_arguments import IGNORED as OF_TRAINER
from tonnage.interchange.parts.recipes.trainer_arguments import (
    OF_FSDP,
    OTHERS,
    READ,
    Trainer,
    autocast_of,
    put_types,
    read_sharding,
    read_trainer,
)
from tonnage.interchange.parts.recipes.trainer_files import llama_factory_yaml
from tonnage.interchange.parts.recipes.trainer_launches import (
    command_signs,
    launch_values,
    read_launch,
)
from tonnage.interchange.parts.recipes.trainer_options import (
    DEEPSPEED,
    PLAIN,
    UNSLOTH,
    completed,
    ignore_empty,
    ignore_names,
    is_quantised,
    keep_base_narrow,
    put_liger,
)
from tonnage.interchange.parts.words import names
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import Reading, flattened, options_of_command
from tonnage.interchange.source import Command, Source
from tonnage.kernel.errors import InvalidInput
from tonnage.runtimes.parts.tools import LLAMA_FACTORY as TOOL

NAME = "llama-factory"
PROGRAMS = ("llamafactory-cli", "lmf")
SCRIPTS = ("src/train.py", "llamafactory/launcher.py", "train_bash.py", "src/train_bash.py")
SIGNS = names("finetuning_type stage template cutoff_len lora_target dataset_dir overwrite_cache")
TRAINER = Trainer(batch=TOOL.micro_batch_size, checkpoints=None, deepspeed=LLAMA_FACTORY)
OBJECTIVES = {"pt": "sft", "sft": "sft", "dpo": "dpo"}
UNFLATTENED = frozenset(
    names("deepspeed optim_args accelerator_config liger_kernel_config ray_init_kwargs vllm_config")
)
# LLaMA-Factory 0.9.5, hparams/*.py.
IGNORED = names(
    """
    template dataset eval_dataset dataset_dir media_dir train_on_prompt mask_history streaming buffer_size mix_strategy
    interleave_probs overwrite_cache preprocessing_batch_size preprocessing_num_workers max_samples eval_num_beams
    ignore_pad_token_for_loss val_size eval_on_each_dataset tool_format default_system enable_thinking
    preserve_thinking tokenized_path data_shared_file_system adapter_folder cache_dir use_fast_tokenizer
    split_special_tokens add_tokens add_special_tokens new_special_tokens_config init_special_tokens model_revision
    low_cpu_mem_usage rope_scaling moe_aux_loss_coef use_reentrant_gc train_from_scratch infer_backend offload_folder
    use_kv_cache infer_dtype hf_hub_token ms_hub_token om_hub_token print_param_status trust_remote_code
    quantization_device_map image_do_pan_and_scan crop_to_patches use_audio_in_video audio_sampling_rate video_fps
    export_dir export_size export_device export_quantization_bit export_quantization_dataset
    export_quantization_nsamples export_quantization_maxlen export_legacy_format export_hub_model_id vllm_maxlen
    vllm_gpu_util vllm_enforce_eager vllm_max_lora_rank vllm_config sglang_maxlen sglang_mem_fraction sglang_tp_size
    sglang_config sglang_lora_backend lora_alpha loraplus_lr_ratio loraplus_lr_embedding use_rslora pissa_init
    pissa_iter pissa_convert create_new_adapter pref_beta pref_bco_weight pref_loss dpo_label_smoothing
    kto_chosen_weight kto_rejected_weight simpo_gamma ld_alpha ppo_score_norm ppo_target ppo_whiten_rewards
    galore_target galore_update_interval galore_scale galore_proj_type apollo_target apollo_update_interval
    apollo_scale apollo_proj apollo_proj_type apollo_scale_type apollo_scale_front badam_mode badam_start_block
    badam_switch_mode badam_switch_interval badam_update_ratio badam_mask_mode badam_verbose use_swanlab
    swanlab_project swanlab_workspace swanlab_run_name swanlab_mode swanlab_api_key swanlab_logdir
    swanlab_lark_webhook_url swanlab_lark_secret use_dft_loss use_asft_loss asft_alpha use_eaft_loss eaft_alpha
    compute_accuracy disable_shuffling early_stopping_steps plot_loss include_effective_tokens_per_second
    ray_init_kwargs master_addr master_port ray_run_name ray_storage_path placement_strategy resources_per_worker
    profiler_output_dir profiler_wait_steps profiler_warmup_steps profiler_active_steps profiler_repeat
    profiler_record_shapes profiler_profile_memory profiler_with_stack profile_modules do_sample temperature top_p
    top_k num_beams max_length max_new_tokens repetition_penalty length_penalty skip_special_tokens module_dropout
    oft_target fp8_backend cutoff_side reserved_label_len use_v1_kernels
    """
)
NOT_READ: Mapping[str, tuple[tuple[object, ...], str]] = {
    "shift_attn": ((), NOT_ESTIMATED),
    "mixture_of_depths": ((), NOT_ESTIMATED),
    "upcast_layernorm": ((), NOT_ESTIMATED),
    "upcast_lmhead_output": ((), NOT_ESTIMATED),
    "resize_vocab": ((), "more rows of embedding and head than the model's config says"),
    "additional_target": ((), NOT_ESTIMATED),
    "freeze_trainable_modules": (("all",), "parts of layers that train: the whole layers are estimated"),
    "freeze_extra_modules": ((), NOT_ESTIMATED),
    "freeze_language_model": ((), NOT_ESTIMATED),
    "freeze_vision_tower": ((True,), NOT_ESTIMATED),
    "freeze_multi_modal_projector": ((True,), NOT_ESTIMATED),
    "image_max_pixels": ((589824, "589824"), NOT_ESTIMATED),
    "image_min_pixels": ((1024, "1024"), NOT_ESTIMATED),
    "video_max_pixels": ((65536, "65536"), NOT_ESTIMATED),
    "video_min_pixels": ((256, "256"), NOT_ESTIMATED),
    "video_maxlen": ((128, "128"), NOT_ESTIMATED),
    "pref_ftx": ((0, 0.0), NOT_ESTIMATED),
    "ref_model": ((), NOT_ESTIMATED),
    "ref_model_adapters": ((), NOT_ESTIMATED),
    "ref_model_quantization_bit": ((), NOT_ESTIMATED),
    "reward_model": ((), NOT_ESTIMATED),
    "reward_model_adapters": ((), NOT_ESTIMATED),
    "reward_model_quantization_bit": ((), NOT_ESTIMATED),
    "reward_model_type": (("lora",), NOT_ESTIMATED),
    "ppo_buffer_size": ((1,), NOT_ESTIMATED),
    "ppo_epochs": ((4,), NOT_ESTIMATED),
    "use_badam": ((), "BAdam is not estimated: AdamW over all layers is"),
    "use_llama_pro": ((), NOT_ESTIMATED),
    "use_mca": ((), NOT_ESTIMATED),
    "use_hyper_parallel": ((), NOT_ESTIMATED),
    "hyper_parallel_args": ((), NOT_ESTIMATED),
    "galore_layerwise": ((), NOT_ESTIMATED),
    "apollo_layerwise": ((), NOT_ESTIMATED),
    "galore_rank": ((16,), "the rank of GaLore is not an option here"),
    "apollo_rank": ((16,), "the rank of APOLLO is not an option here"),
    "oft_rank": ((0,), NOT_ESTIMATED),
    "oft_block_size": ((32,), NOT_ESTIMATED),
    "fp8": ((), "products in 8 bits are not estimated for transformers' layers"),
    "fp8_enable_fsdp_float8_all_gather": ((), "products in 8 bits are not estimated for transformers' layers"),
    "enable_torch_profiler": ((), "the profiler needs memory and time"),
    "use_kt": ((), NOT_ESTIMATED),
    "kt_weight_path": ((), NOT_ESTIMATED),
    "kt_expert_checkpoint_path": ((), NOT_ESTIMATED),
    "kt_use_lora_experts": ((), NOT_ESTIMATED),
    "kt_lora_expert_num": ((), NOT_ESTIMATED),
    "kt_lora_expert_intermediate_size": ((), NOT_ESTIMATED),
    "adapter_name_or_path": ((), "an adapter whose rank stands in its own file"),
}
OWN_READ = names(
    """
    model_name_or_path stage finetuning_type lora_rank lora_target lora_dropout use_dora quantization_bit
    quantization_type quantization_method double_quantization cutoff_len packing neat_packing flash_attn
    disable_gradient_checkpointing use_unsloth use_unsloth_gc enable_liger_kernel pure_bf16 use_galore use_apollo
    use_adam_mini use_muon freeze_trainable_layers ray_num_workers
    """
)
FOUR = 4  # bits of qlora
VARIABLES = ("FORCE_TORCHRUN", "USE_MCA", "OPTIM_TORCH", "USE_RAY", "ALLOW_EXTRA_ARGS", "DISABLE_VERSION_CHECK")
# Optimizers that have a switch of their own.
SWITCHES = {"use_galore": "galore-adamw", "use_apollo": "apollo", "use_adam_mini": "adam-mini", "use_muon": "muon"}
SAYS = frozenset(
    names(
        """
        model sequence_length micro_batch_size num_microbatches global_batch_size method lora_rank lora_targets
        lora_dropout base_weights upcast_base trainable_layers optimizer optimizer_implementation precision recompute
        attention packing liger loss runtime model_code zero_stage offload_optimizer offload_parameters
        offload_activations optimizer_offload_fraction objective max_steps data_loader_workers reduce_bucket_size
        allgather_bucket_size overlap_comm contiguous_gradients sub_group_size stage3_prefetch_bucket_size
        stage3_max_live_parameters stage3_max_reuse_distance stage3_param_persistence_threshold
        stage3_gather_16bit_weights_on_model_save zero_hpz_partition_size zero_quantized_weights
        zero_quantized_nontrainable_weights zero_quantized_gradients
        """
    )
)


# ---- What a source is.


def recognises(source: Source) -> int:
    if source.kind in ("command", "text"):
        launches = [parts for command in source.commands if (parts := _command(command)) is not None]
        return max((command_signs(parts[0]) for parts in launches), default=0)
    tree = source.tree
    if "model_name_or_path" not in tree and "model_name" not in tree:
        return 0
    return 2 * sum(name in tree for name in SIGNS)


def _command(command: Command) -> tuple[TrainingLaunch, tuple[str, ...]] | None:
    """The launcher, and the words behind `train`; None of another command."""
    launch = training_launch(command.words)
    if launch.program in PROGRAMS and launch.words[1:2] == ("train",):
        return launch, launch.words[2:]
    if launch.words and (launch.words[0].endswith(SCRIPTS) or launch.words[0] == "llamafactory.launcher"):
        behind = launch.words[1:]
        of_file = bool(behind) and behind[0].endswith((".yaml", ".yml", ".json"))
        if of_file or any(word.lstrip("-").startswith(("finetuning_type", "stage")) for word in behind):
            return launch, behind
    return None


def values(source: Source) -> dict[str, Any]:
    if source.kind not in ("command", "text"):
        return flattened(source.tree, UNFLATTENED)
    for command in source.commands:
        if (parts := _command(command)) is not None:
            return _of_command(source, command, *parts)
    raise InvalidInput(
        "{file} has no command of LLaMA-Factory, such as llamafactory-cli train config.yaml.", file=source.name
    )


def _of_command(source: Source, command: Command, launch: TrainingLaunch, words: tuple[str, ...]) -> dict[str, Any]:
    """A config with changes such as `learning_rate=1e-5` behind it (OmegaConf), or options alone."""
    values = launch_values(command, launch, VARIABLES)
    values["launcher.program"] = launch.program
    of_accelerate = accelerate_values(source, values)
    if words and words[0].endswith((".yaml", ".yml", ".json")):
        config = flattened(source.sibling(words[0]).tree, UNFLATTENED)
        for word in words[1:]:
            name, equals, value = word.lstrip("-").partition("=")
            if not equals:
                raise InvalidInput(
                    "behind a config LLaMA-Factory takes changes such as cutoff_len=4096. Got {word}.", word=word
                )
            config[name] = value
        return {**of_accelerate, **config, **values}
    options, _ = options_of_command(words)
    return {**of_accelerate, **{name.replace("-", "_"): value for name, value in options.items()}, **values}


# ---- What its keys mean.


def read(r: Reading) -> None:
    r.verb = "train"
    kind = read_accelerate(r)
    read_launch(r)
    r.rename({"model_name": "model_name_or_path"})
    if r.has("ray_num_workers") and r.integer("ray_num_workers") > 1:
        r.count_machines(per_node=r.integer("ray_num_workers"))
        r.put("on", "", "ray_num_workers")
    r.ignore(["ray_num_workers", *VARIABLES, "launcher.program"])
    if r.get("USE_MCA") in ("1", "true"):
        r.unsure("USE_MCA", "training on Megatron-core through LLaMA-Factory is not read")
    r.same({"model_name_or_path": "model"})
    _method(r)
    sharded = _runtime(r, kind)
    keep_base_narrow(r)
    _precision(r, sharded)
    _optimizer_switches(r)
    _data(r)
    read_trainer(r, TRAINER, sharded)
    _kernels(r, sharded)
    for key, (harmless, why) in NOT_READ.items():
        r.needs_default(key, *harmless, why=why)
    ignore_names(r, IGNORED)
    ignore_empty(r, known())


def _runtime(r: Reading, kind: str) -> str:
    zero = ZeroTrainer(
        micro_batch_size=r.integer("per_device_train_batch_size", TRAINER.batch),
        accumulation=r.integer("gradient_accumulation_steps", 1),
        precision="bf16" if r.flag("pure_bf16") else autocast_of(r),
    )
    sharded = read_sharding(r, TRAINER, kind, zero)
    if r.flag("use_unsloth") and sharded == PLAIN:
        if r.num_accelerators == 1:
            r.put("runtime", UNSLOTH, "use_unsloth")
        else:
            r.unsure("use_unsloth", "Unsloth is estimated on one accelerator alone")
    elif r.flag("use_unsloth"):
        r.unsure("use_unsloth", "Unsloth is estimated without sharding alone")
    r.ignore(["use_unsloth"])
    return sharded


def _method(r: Reading) -> None:
    kinds = {"lora": "lora", "full": "full", "freeze": "freeze", "oft": ""}
    method = r.choice("finetuning_type", kinds, "lora")
    r.assume("finetuning_type", "lora", "method")
    if not method:
        r.unsure("finetuning_type", "OFT is not estimated: LoRA is")
        method = "lora"
    bits = r.integer("quantization_bit") if r.has("quantization_bit") else 0
    if method == "lora":
        method = "dora" if r.flag("use_dora") else "qlora" if bits == FOUR else method
        _base(r, bits)
        r.assume("lora_rank", TOOL.lora_rank, "lora_rank")
        r.assume("lora_target", "all", "")
        if r.has("lora_rank"):
            r.put("lora_rank", r.integer("lora_rank"), "lora_rank")
        if r.has("lora_target"):
            put_targets(r, "lora_target", ("all",))
        r.put("lora_dropout", True if r.number("lora_dropout") else None, "lora_dropout")
    elif bits:
        raise r.wrong("quantization_bit", "left out, but with lora or oft")
    r.put("method", method, "finetuning_type", "use_dora")
    if method == "freeze":
        layers = r.integer("freeze_trainable_layers", 2)
        if layers < 1:
            r.unsure("freeze_trainable_layers", "the first layers that train are not estimated: the last are")
        r.put("trainable_layers", abs(layers) or None, "freeze_trainable_layers")
    r.ignore(
        names(
            "lora_rank lora_target lora_dropout freeze_trainable_layers quantization_bit quantization_type "
            "quantization_method double_quantization"
        )
    )


def _base(r: Reading, bits: int) -> None:
    way = r.text("quantization_method", "bnb").lower()
    if bits and way not in ("bnb", "bitsandbytes"):
        r.unsure("quantization_method", "bases that bitsandbytes does not quantise are not estimated: NF4 is")
    if bits == 8:
        r.put("base_weights", "int8", "quantization_bit")
    elif bits:
        if bits != FOUR:
            r.unsure("quantization_bit", "bases of other than 4 and 8 bits are not estimated: 4 bits are")
        kind = r.choice("quantization_type", {"nf4": "nf4", "fp4": "fp4"}, "nf4")
        twice = r.flag("double_quantization", True)
        base = f"{kind}-double" if twice else kind
        r.put("base_weights", base, "quantization_bit", "quantization_type", "double_quantization")


def _precision(r: Reading, sharded: str) -> None:
    """model/adapter.py, init_adapter: weights that train are turned to fp32, but with pure_bf16."""
    if r.flag("pure_bf16") and sharded == DEEPSPEED:
        r.unsure("pure_bf16", "weights in bf16 without DeepSpeed's copies: those with them are estimated")
        r.put("precision", "bf16-mixed", "bf16")
        r.ignore(["fp16"])
        return
    narrow = r.flag("pure_bf16") and r.question.get("method") in ("full", "freeze")
    put_types(r, narrow=narrow, keys=("bf16", "fp16", "pure_bf16"))


def _optimizer_switches(r: Reading) -> None:
    for key, name in SWITCHES.items():
        if r.flag(key):
            r.put("optimizer", name, key)
        r.ignore([key])


def _data(r: Reading) -> None:
    stage = r.text("stage", "sft")
    if stage in OBJECTIVES:
        r.put("objective", OBJECTIVES[stage] if stage == "dpo" else None, "stage")
    elif stage in ("rm", "ppo", "kto"):
        r.unsure("stage", "this stage is not estimated: next-token training is")
    else:
        raise r.wrong("stage", "one of pt, sft, rm, ppo, dpo and kto")
    if r.text("pref_loss", "sigmoid") in ("orpo", "simpo"):
        r.unsure("pref_loss", "a loss of preferences without a reference model: one is estimated")
    r.assume("cutoff_len", TOOL.sequence_length, "sequence_length")
    if r.has("cutoff_len"):
        r.put("sequence_length", r.integer("cutoff_len"), "cutoff_len")
    if r.flag("neat_packing"):
        r.put("packing", True, "neat_packing")
    r.ignore(["neat_packing", "packing"], why="sequences that are packed see each other, as one long one does")


def _kernels(r: Reading, sharded: str) -> None:
    r.assume("disable_gradient_checkpointing", not TOOL.checkpoints, "recompute")
    is_off = r.flag("disable_gradient_checkpointing")
    r.put("recompute", "none" if is_off else "full", "disable_gradient_checkpointing")
    if r.flag("use_unsloth_gc") and not is_off:
        r.put("offload_activations", "cpu", "use_unsloth_gc")
    r.ignore(["use_unsloth_gc"])
    runtime = r.question["runtime"]
    if r.text("flash_attn", "auto") == "auto":
        put_attention(r, "flash_attn", "flash" if runtime == UNSLOTH else "sdpa")
        r.put("attention", "flash" if runtime == UNSLOTH else "sdpa", "flash_attn")
    else:
        put_attention(r, "flash_attn", "sdpa")
    if r.flag("enable_liger_kernel"):
        put_liger(r, ["enable_liger_kernel"], all_kernels=True)
    r.ignore(["enable_liger_kernel"])
    by_cli = r.text("launcher.program", PROGRAMS[0]) in PROGRAMS and r.get("OPTIM_TORCH", "1") == "1"
    if by_cli and runtime == "ddp" and "expandable_segments" not in r.question:
        r.assume("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "", why="llamafactory-cli sets it")
        r.put("expandable_segments", True)


def known() -> tuple[str, ...]:
    sections = tuple(f"fsdp_config.{name}" for name in OF_FSDP)
    return (*OWN_READ, *READ, *IGNORED, *NOT_READ, *OF_TRAINER, *OTHERS, *sections)


# ---- Export.


def fills(verb: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    return completed(question, _own)


def _own(runtime: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """A quantised base stays narrow, and llamafactory-cli sets the allocator."""
    return TOOL.settings(
        runtime,
        question.get("method"),
        is_quantised=is_quantised(question),
        tensor=question.get("tensor_parallel_size"),
    )


def write(w: PlannedRun) -> str:
    return llama_factory_yaml(w)


FORMATS.add(
    NAME,
    Format(
        name=NAME,
        tool=TOOL.title,
        version=TOOL.version,
        source=TOOL.source,
        recognises=recognises,
        values=values,
        read=read,
        known=known,
        verbs=("train",),
        fills=fills,
        write=write,
        ending=".yaml",
        says=SAYS | {"expandable_segments"},
    ),
)
