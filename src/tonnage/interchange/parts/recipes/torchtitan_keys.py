"""Keys of torchtitan by what they change: config/configs.py of 0.3, config/job_config.py of 0.2, config_manager.py of
0.1.
"""

from collections.abc import Mapping

from tonnage.interchange.parts.hugging_face.keys import NOT_ESTIMATED
from tonnage.interchange.parts.words import names

# Defaults of 0.3; those of 0.1 and 0.2 are the same.
DEFAULTS: Mapping[str, object] = {
    "training.local_batch_size": 8,
    "training.seq_len": 2048,
    "training.steps": 10000,
    "training.dtype": "float32",
    "training.mixed_precision_param": "bfloat16",
    "training.enable_cpu_offload": False,
    "parallelism.data_parallel_replicate_degree": 1,
    "parallelism.data_parallel_shard_degree": -1,
    "parallelism.fsdp_reshard_after_forward": "default",
    "parallelism.tensor_parallel_degree": 1,
    "parallelism.pipeline_parallel_degree": 1,
    "parallelism.pipeline_parallel_schedule": "1F1B",
    "parallelism.context_parallel_degree": 1,
    "parallelism.expert_parallel_degree": 1,
    "compile.enable": False,
    "compile.components": ["model", "loss"],
    "compile.enable_async_tensor_parallel": False,
    "optimizer.implementation": "fused",
}
# Names of 2024 and 0.1 -> those of 0.2.
OLDER: Mapping[str, str] = {
    "training.batch_size": "training.local_batch_size",
    "training.tensor_parallel_degree": "parallelism.tensor_parallel_degree",
    "training.data_parallel_degree": "parallelism.data_parallel_shard_degree",
    "training.data_parallel_shard_degree": "parallelism.data_parallel_shard_degree",
    "training.data_parallel_replicate_degree": "parallelism.data_parallel_replicate_degree",
    "experimental.pipeline_parallel_degree": "parallelism.pipeline_parallel_degree",
    "experimental.pipeline_parallel_schedule": "parallelism.pipeline_parallel_schedule",
    "experimental.pipeline_parallel_microbatches": "parallelism.pipeline_parallel_microbatches",
    "experimental.context_parallel_degree": "parallelism.context_parallel_degree",
    "experimental.enable_async_tensor_parallel": "parallelism.enable_async_tensor_parallel",
    "training.compile": "compile.enable",
    "parallelism.enable_async_tensor_parallel": "compile.enable_async_tensor_parallel",
    "float8.enable_fsdp_float8_all_gather": "quantize.linear.float8.enable_fsdp_float8_all_gather",
    "float8.recipe_name": "quantize.linear.float8.recipe_name",
    "float8.filter_fqns": "quantize.linear.float8.filter_fqns",
    "float8.precompute_float8_dynamic_scale_for_fsdp": (
        "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp"
    ),
}
OF_2024 = ("training.batch_size", "training.tensor_parallel_degree", "training.data_parallel_degree", "optimizer.fused")
OF_01 = ("training.compile", "training.seed", "training.deterministic")
IGNORED = names(
    """
    job profiling profiler metrics lr_scheduler checkpoint comm validation validator debug memory_estimation
    fault_tolerance tokenizer hf_assets_path dump_folder dataloader experimental.custom_import
    experimental.custom_args_module experimental.custom_model_path model.hf_assets_path model.tokenizer_path
    model.norm_type model.print_after_conversion optimizer.lr optimizer.beta1 optimizer.beta2 optimizer.eps
    optimizer.weight_decay training.dataset training.dataset_path training.max_norm
    training.gc_freq training.gc_debug training.seed training.deterministic training.warmup_steps
    training.data_parallel_type training.enable_fp8_linear training.dataloader compile.backend
    activation_checkpoint.preserve_rng_state activation_checkpoint.determinism_check activation_checkpoint.debug
    activation_checkpoint.early_stop activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns
    activation_checkpoint.force_recompute_mm_shapes_by_fqns activation_checkpoint.visualize_memory_budget_pareto
    quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp quantize.linear.float8.filter_fqns
    quantize.linear.float8.emulate float8.emulate float8.force_recompute_fp8_weight_in_bwd
    parallelism.context_parallel_rotate_method
    parallelism.pipeline_parallel_expert_parallel_overlap quantize.linear.mx quantize.grouped_mm mx
    """
)
OTHERS: Mapping[str, tuple[tuple[object, ...], str]] = {
    "training.mixed_precision_reduce": (("float32",), NOT_ESTIMATED),
    "training.disable_cuda_graphs": ((True, "true"), "CUDA graphs of a whole step are not estimated for torchtitan"),
    "parallelism.enable_fsdp_symm_mem": ((), NOT_ESTIMATED),
    "parallelism.spmd_backend": (("spmd_types",), "another way to write sharded layers"),
    "parallelism.module_fqns_per_model_part": ((), NOT_ESTIMATED),
    "parallelism.pipeline_parallel_split_points": (([],), NOT_ESTIMATED),
    "parallelism.pipeline_parallel_first_stage_less_layers": ((1, "1"), "a first stage of another length"),
    "parallelism.pipeline_parallel_last_stage_less_layers": ((1, "1"), "a last stage of another length"),
    "parallelism.pipeline_parallel_schedule_csv": (("",), "a schedule of your own"),
    "parallelism.pipeline_parallel_microbatches": ((), NOT_ESTIMATED),
    "parallelism.context_parallel_load_balancer": (("headtail",), "another balance of context ranks"),
    "parallelism.context_parallel_ptrr_mask_key": ((), "another balance of context ranks"),
    "parallelism.disable_loss_parallel": (("false",), "a loss whose logits tensor ranks hold whole"),
    "parallelism.enable_compiled_autograd": (("false",), NOT_ESTIMATED),
    "optimizer.early_step_in_backward": (("false",), "an optimizer that steps in backward, of torchtitan"),
    "optimizer.param_groups": ((), "groups of weights with optimizers of their own"),
    "optimizer.optimizer_factory_kwargs_by_name": ((), "groups of weights with optimizers of their own"),
    "override.imports": ((), "kernels that stand in for torchtitan's own"),
    "activation_checkpoint.memory_budget": ((0.5, "0.5"), NOT_ESTIMATED),
    "model.use_flex_attn": ((), NOT_ESTIMATED),
}
READ = names(
    """
    module config model.name model.flavor model.converters training.local_batch_size training.global_batch_size
    training.seq_len training.steps training.enable_cpu_offload training.dtype training.mixed_precision_param
    parallelism.data_parallel_replicate_degree parallelism.data_parallel_shard_degree
    parallelism.fsdp_reshard_after_forward parallelism.tensor_parallel_degree parallelism.enable_sequence_parallel
    parallelism.pipeline_parallel_degree parallelism.pipeline_parallel_schedule
    parallelism.pipeline_parallel_layers_per_stage parallelism.pipeline_parallel_microbatch_size
    parallelism.context_parallel_degree parallelism.expert_parallel_degree parallelism.expert_tensor_parallel_degree
    parallelism.expert_parallel_comm_backend parallelism.enable_async_tensor_parallel compile.enable
    compile.components compile.enable_async_tensor_parallel optimizer.name optimizer.implementation
    optimizer.fused float8.enable_float8_linear
    activation_checkpoint activation_checkpoint.mode activation_checkpoint.selective_ac_option loss.num_chunks
    dataloader.num_workers training.dataloader.num_workers quantize.linear.float8.recipe_name
    quantize.linear.float8.enable_fsdp_float8_all_gather
    """
)
# Options without a value, as tyro has them.
SWITCHES = frozenset(
    f"{section}.{prefix}{name}".replace("_", "-")
    for section, members in {
        "training": ("enable_cpu_offload", "disable_cuda_graphs", "gc_debug", "deterministic", "compile"),
        "parallelism": (
            "enable_sequence_parallel",
            "enable_fsdp_symm_mem",
            "disable_loss_parallel",
            "enable_async_tensor_parallel",
            "enable_compiled_autograd",
        ),
        "compile": ("enable", "enable_async_tensor_parallel"),
        "checkpoint": names(
            "enable initial_load_in_hf initial_load_model_only last_save_in_hf last_save_model_only load_only "
            "create_seed_checkpoint enable_first_step_checkpoint enable_checkpoint"
        ),
        "profiling": ("enable_profiling", "enable_memory_snapshot"),
        "profiler": ("enable_profiling", "enable_memory_snapshot"),
        "metrics": ("enable_tensorboard", "enable_wandb", "save_for_all_ranks", "disable_color_printing"),
        "validator": ("enable",),
        "validation": ("enable",),
        "debug": ("deterministic", "moe_force_load_balance", "print_config", "deterministic_warn_only"),
        "optimizer": ("early_step_in_backward",),
        "job": ("print_config", "print_args"),
        "float8": ("enable_fsdp_float8_all_gather", "precompute_float8_dynamic_scale_for_fsdp"),
        "quantize.linear.float8": (
            "enable_fsdp_float8_all_gather",
            "precompute_float8_dynamic_scale_for_fsdp",
        ),
        "memory_estimation": ("enable", "enabled", "disable_fake_mode"),
    }.items()
    for name in members
    for prefix in ("", "no-")
)


def known() -> tuple[str, ...]:
    """All names of keys."""
    return (*READ, *IGNORED, *OTHERS, *OLDER)
