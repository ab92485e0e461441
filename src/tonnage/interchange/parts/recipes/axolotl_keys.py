"""Keys of axolotl 0.21 by what they change: axolotl, utils/schemas/*.py and integrations/*/args.py."""

from tonnage.interchange.parts.hugging_face.keys import NOT_ESTIMATED
from tonnage.interchange.parts.words import names

# Neither memory nor time of a step: data, templates, learning rates, logs, checkpoints, where a job runs.
IGNORED: tuple[str, ...] = names(
    """
    strict resume_from_checkpoint auto_resume_from_checkpoints mean_resizing_embeddings shrink_embeddings
    embeddings_skip_upcast reinit_weights export dynamic_checkpoint center_rewards_coefficient dpo_use_weighting
    dpo_label_smoothing dpo_ld_alpha dpo_loss_type dpo_loss_weights dpo_beta dpo_norm_loss rpo_alpha datasets
    test_datasets shuffle_merged_datasets shuffle_before_merging_datasets dataset_prepared_path dataset_shard_num
    dataset_shard_idx skip_prepare_dataset num_dataset_shards_to_save pretraining_dataset dataset_processes
    dataset_num_proc dataset_exact_deduplication dataset_keep_in_memory dataloader_pin_memory
    dataloader_prefetch_factor dataloader_drop_last remove_unused_columns push_dataset_to_hub hf_use_auth_token
    device device_map world_size local_rank ddp ddp_timeout seed full_determinism do_causal_lm_eval
    eval_causal_lm_metrics do_bench_eval bench_dataset bench_split metric_for_best_model greater_is_better
    loss_watchdog_threshold loss_watchdog_patience gc_steps gc_collect_steps excess_length_strategy min_sample_len
    max_prompt_len balance_labels label_balance_window_optim_steps sample_packing_group_size sample_packing_bin_size
    sample_packing_sequentially sample_packing_mp_start_method sample_packing_eff_est eval_sample_packing
    fa_varlen_kwargs_in_collator pad_to_multiple_of pad_to_sequence_len curriculum_sampling multipack_real_batches
    pretrain_multipack_buffer_size streaming streaming_multipack_buffer_size pretraining_sample_concatenation
    flex_attn_compile_kwargs chunked_cross_entropy_num_chunks tiled_mlp_num_shards tiled_mlp_use_original_mlp
    fsdp_final_state_dict_type val_set_size heads_k_stride ring_attn_func special_tokens tokens
    added_tokens_overrides torch_compile_backend torch_compile_mode torch_compile_regional torch_compile_options
    num_epochs warmup_steps warmup_ratio eval_steps evals_per_epoch eval_strategy evaluation_strategy eval_on_start
    eval_table_size eval_max_new_tokens save_steps saves_per_epoch save_strategy save_total_limit save_first_step
    save_only_model logging_steps logging_nan_inf_filter early_stopping_patience load_best_model_at_end
    include_tokens_per_second include_tkps neftune_noise_alpha noisy_embedding_alpha orpo_alpha simpo_gamma
    cpo_alpha kto_desirable_weight kto_undesirable_weight rl_beta low_cpu_mem_usage chat_template
    chat_template_jinja chat_template_kwargs eot_tokens default_system_message fix_untrained_tokens is_preprocess
    preprocess_iterable total_num_tokens total_supervised_tokens axolotl_config_path is_falcon_derived_model
    is_llama_derived_model is_mistral_derived_model is_qwen_derived_model generate_samples num_generation_samples
    generation_max_new_tokens generation_temperature generation_top_p generation_top_k generation_prompt_ratio
    generation_do_sample cls_model_config tokenizer_config tokenizer_use_fast tokenizer_legacy
    tokenizer_use_mistral_common tokenizer_type tokenizer_save_jinja_files processor_type processor_kwargs
    trust_remote_code experimental_skip_move_to_device model_type type_of_model model_revision revision_of_model
    output_dir hub_model_id hub_strategy hub_revision save_safetensors train_on_inputs group_by_length learning_rate
    embedding_lr embedding_lr_scale weight_decay torchdistx_path lr_scheduler lr_scheduler_kwargs
    lr_quadratic_warmup cosine_min_lr_ratio cosine_constant_lr_ratio lr_div_factor lr_groups adam_epsilon
    adam_epsilon2 adam_beta1 adam_beta2 adam_beta3 dion_lr dion_momentum max_grad_norm jagged_restart_steps
    jagged_restart_warmup_steps jagged_restart_anneal_steps lora_alpha lora_alpha_pattern lora_fan_in_fan_out
    lora_model_dir peft_use_rslora peft_init_lora_weights loraplus_lr_ratio loraplus_lr_embedding
    qlora_sharded_model_loading lora_on_cpu merge_lora merge_method use_mlflow mlflow_tracking_uri
    mlflow_experiment_name mlflow_run_name hf_mlflow_log_artifacts use_wandb wandb_name wandb_run_id wandb_mode
    wandb_project wandb_entity wandb_watch wandb_log_model use_comet comet_api_key comet_workspace
    comet_project_name comet_experiment_key comet_mode comet_online comet_experiment_config gradio_title
    gradio_share gradio_server_name gradio_server_port gradio_max_new_tokens gradio_temperature use_ray ray_run_name
    ray_num_workers resources_per_worker use_otel_metrics otel_metrics_host otel_metrics_port use_trackio
    trackio_project_name trackio_run_name trackio_space_id role_boundaries image_resize_algorithm use_eaft
    eaft_alpha eaft_k use_dft grokfast_alpha grokfast_lamb lm_eval_tasks lm_eval_batch_size lm_eval_post_train
    lm_eval_model use_swanlab swanlab_project swanlab_experiment_name swanlab_description swanlab_mode
    swanlab_workspace swanlab_api_key swanlab_log_model swanlab_web_host swanlab_api_host swanlab_lark_webhook_url
    swanlab_lark_secret swanlab_log_completions swanlab_completion_log_interval swanlab_completion_max_buffer
    liger_use_token_scaling liger_layer_norm liger_rms_norm_gated base_model_config base_model_ignore_patterns
    gpu_memory_limit scaling_softmax scaling_softmax_factor scaling_softmax_bias fp32_norm_classes debug
    use_tensorboard qgalore_rank qgalore_update_proj_gap qgalore_scale qgalore_proj_type qgalore_proj_quant
    qgalore_proj_bits qgalore_proj_group_size qgalore_cos_threshold qgalore_gamma_proj qgalore_queue_size fp8_config
    pose_max_context_len pose_num_chunks pose_split_on_token_ids autotune_cache_path autotune_profiles
    autotune_neighborhood expert_parallel_num_nvl_bytes expert_parallel_num_rdma_bytes
    expert_parallel_fallback_on_unsupported coreweave image_registry docker_auth nvfp4_merge_aware_start_step
    """
)
# Of the sections of reinforcement learning, what changes rewards, sampling and logs alone
IGNORED_RL: tuple[str, ...] = names(
    """
    trl.beta trl.vllm_server_host trl.vllm_server_port trl.vllm_server_timeout trl.vllm_guided_decoding_regex
    trl.reward_funcs trl.reward_weights trl.log_completions trl.num_completions_to_print
    trl.importance_sampling_level trl.ref_model_mixup_alpha trl.ref_model_sync_steps trl.scale_rewards
    trl.temperature trl.top_p trl.top_k trl.min_p trl.repetition_penalty trl.generation_kwargs
    trl.chat_template_kwargs trl.epsilon trl.epsilon_high trl.loss_type trl.mask_truncated_completions
    trl.entropy_coef trl.use_adaptive_entropy trl.entropy_target trl.entropy_coef_delta trl.entropy_coef_min
    trl.entropy_coef_max trl.num_generations trl.generation_batch_size trl.rollout_func
    trl.multi_objective_aggregation trl.reward_num_workers trl.vllm_importance_sampling_clip_min
    trl.vllm_importance_sampling_clip_max trl.vllm_importance_sampling_correction trl.vllm_importance_sampling_mode
    trl.vllm_importance_sampling_cap trl.off_policy_mask_threshold trl.use_bias_correction_kl trl.log_multimodal
    vllm.device vllm.host vllm.port vllm.dtype vllm.enable_reasoning vllm.reasoning_parser vllm.serve_module
    vllm.worker_extension_cls vllm.enable_prefix_caching vllm.enforce_eager vllm.tensor_parallel_size
    vllm.data_parallel_size vllm.max_model_len
    trl.prefetch_depth trl.vllm_sync_interval trl.streaming_partial_batch trl.streaming_min_groups
    trl.replay_buffer_size trl.replay_recompute_logps trl.reroll_start_fraction trl.reroll_max_groups
    trl.skip_zero_advantage_batches
    """
)
KERNELS = """
    use_scattermoe use_sonicmoe use_dsv4_kernels use_glm_dsa_kernels dsv4_fp8_nonexpert_mode dsv4_fp8_lora_kernel
    dsv4_shared_mlp_lora_kernel dsv4_bf16_all dsv4_fp4_grouped_mode gemma4_fp8_nonexpert gemma4_nf4_nonexpert
    expert_backend nonexpert_quantization moe_grouped_backend moe_dequant_chunk_size moe_bnb_fast
    """
# What changes memory or time where it is not at this value, by the reason that is given.
OTHERS: dict[str, tuple[tuple[object, ...], str]] = {
    "resize_token_embeddings_to_32x": ((), "more rows of embedding and head than the model's config says"),
    "trainer_cls": ((), "another trainer"),
    "reward_model": ((), NOT_ESTIMATED),
    "process_reward_model": ((), NOT_ESTIMATED),
    "num_labels": ((), "a head of another size"),
    "precompute_ref_log_probs": ((), "the reference model is estimated beside the trained one"),
    "dpo_use_liger_kernel": ((), NOT_ESTIMATED),
    "dpo_padding_free": ((), NOT_ESTIMATED),
    "dpo_use_logits_to_keep": ((), NOT_ESTIMATED),
    "dpo_generate_during_eval": ((), NOT_ESTIMATED),
    "accelerator_config": ((), NOT_ESTIMATED),
    "ddp_bucket_cap_mb": ((25,), "buckets of DDP of another size"),
    "ddp_broadcast_buffers": ((True,), "buffers that DDP sends"),
    "ddp_find_unused_parameters": ((), "DDP that looks for unused parameters"),
    "torch_empty_cache_steps": ((), "an allocator that is emptied while training"),
    "fp8": ((), "products in 8 bits are not estimated for transformers' layers"),
    "fp8_enable_fsdp_float8_all_gather": ((), "products in 8 bits are not estimated for transformers' layers"),
    "selective_checkpointing": ((), "checkpointing that keeps some operations: full recomputation is estimated"),
    "layer_offloading": ((), NOT_ESTIMATED),
    "freeze_mm_modules": ((True,), NOT_ESTIMATED),
    "unfrozen_parameters": (([],), "layers that train by their names: all are estimated as training"),
    "batch_flattening": (("auto",), NOT_ESTIMATED),
    "use_pose": ((), "longer contexts by PoSE"),
    "pretrain_multipack_attn": ((True,), "packed sequences that see each other"),
    "flash_attn_cross_entropy": ((), "this loss is not estimated: all logits at once are"),
    "flash_attn_fuse_mlp": ((), NOT_ESTIMATED),
    "flash_optimum": ((), NOT_ESTIMATED),
    "gemma4_hybrid_attn_impl": ((), "two attention kernels in one model"),
    "large_head_attention": (("sdpa",), NOT_ESTIMATED),
    "flash_attn_d512": ((), NOT_ESTIMATED),
    "sdpa_varlen": ((), "variable-length attention of SDPA is not estimated: its mask is"),
    "fused_attn_kernel": ((), NOT_ESTIMATED),
    "experts_implementation": (("grouped_mm", "eager"), "experts of another implementation"),
    "ple_cpu_offload": ((), NOT_ESTIMATED),
    "quantize_moe_experts": ((), "experts are estimated as bitsandbytes quantises linear layers"),
    "lora_mlp_kernel": ((), "axolotl's fused adapters need less memory than is estimated"),
    "lora_qkv_kernel": ((), "axolotl's fused adapters need less memory than is estimated"),
    "lora_o_kernel": ((), "axolotl's fused adapters need less memory than is estimated"),
    "lora_embedding_kernel": ((), "axolotl's fused adapters need less memory than is estimated"),
    "chunked_cross_entropy": ((), "chunks of the loss whose logits stay whole: all of it at once is estimated"),
    "tiled_mlp": ((), "feed-forward layers in tiles need less memory than is estimated"),
    "llama4_linearized_experts": ((), "experts of another layout"),
    "deepcompile": ((), NOT_ESTIMATED),
    "fp32_norms": ((), NOT_ESTIMATED),
    "torch_compile": (("auto",), "torch.compile is estimated for torchtitan's layers alone"),
    "profiler_steps": ((), "the profiler needs memory and time"),
    "profiler_steps_start": ((0,), "the profiler needs memory and time"),
    "sync_profiler_steps": ((), "the profiler needs memory and time"),
    "sync_profiler_start_step": ((2,), "the profiler needs memory and time"),
    "max_memory": ((), NOT_ESTIMATED),
    "use_kernels": ((), NOT_ESTIMATED),
    "model_quantization_config": ((), "weights that are loaded in another type"),
    "use_onebitllms": ((), NOT_ESTIMATED),
    "auto_find_batch_size": ((), "the batch size that fits is looked for while training"),
    "optim_args": ((), NOT_ESTIMATED),
    "optim_target_modules": ((), "the optimizer projects some layers alone"),
    "nf4_backend": (("bitsandbytes",), "torchao's NF4 is not estimated: bitsandbytes' is"),
    "nvfp4_merge_aware": ((), NOT_ESTIMATED),
    "lora_target_parameters": ((), "adapters beside stacked experts: those beside linear layers are estimated"),
    "lora_modules_to_save": (([],), NOT_ESTIMATED),
    "lora_rank_pattern": ((), "ranks that differ by layer: lora_r is estimated everywhere"),
    "peft_layers_to_transform": ((), "adapters in some layers: those of all are estimated"),
    "peft_layers_pattern": ((), "adapters in some layers: those of all are estimated"),
    "peft_layer_replication": ((), "layers that are repeated"),
    "peft_trainable_token_indices": ((), NOT_ESTIMATED),
    "peft_ensure_weight_tying": ((), NOT_ESTIMATED),
    "peft_autocast_adapter_dtype": ((True,), "adapters in 16 bit are estimated in fp32"),
    "lora_fp32_gradients": ((), NOT_ESTIMATED),
    "gptq": ((), NOT_ESTIMATED),
    "relora": ((), "ReLoRA is estimated as LoRA"),
    "relora_cpu_offload": ((), "ReLoRA is estimated as LoRA"),
    "relora_prune_ratio": ((), "ReLoRA is estimated as LoRA"),
    "relora_prune_method": (("magnitude",), "ReLoRA is estimated as LoRA"),
    "lisa_n_layers": ((), "LISA is not estimated: all layers train"),
    "lisa_step_interval": ((), "LISA is not estimated: all layers train"),
    "lisa_layers_attribute": (("model.layers",), "LISA is not estimated: all layers train"),
    "image_size": ((), NOT_ESTIMATED),
    "dense_mixer": ((), NOT_ESTIMATED),
    "liger_kernel_impl": ((), NOT_ESTIMATED),
    "cut_cross_entropy_accum_c_fp32": ((), NOT_ESTIMATED),
    "cut_cross_entropy_c_grad_chunk_size": ((), NOT_ESTIMATED),
    "expert_parallel_backend": (("auto", "torch"), NOT_ESTIMATED),
    "overrides_of_model_kwargs": ((), NOT_ESTIMATED),
    "model_kwargs": ((), NOT_ESTIMATED),
    "expert_parallel_token_capacity": ((), "a limit of tokens of an expert rank is not estimated for axolotl"),
    "expert_parallel_save_dispatch": ((), NOT_ESTIMATED),
    "expert_parallel_dispatch_chunks": ((1,), NOT_ESTIMATED),
    "rope_scaling": ((), "longer contexts by RoPE"),
    "s2_attention": ((), NOT_ESTIMATED),
    "flash_attn_rms_norm": ((), NOT_ESTIMATED),
    "max_packed_sequence_len": ((), NOT_ESTIMATED),
    **dict.fromkeys(names(KERNELS), ((), "axolotl's kernels of experts are not estimated")),
    "dion_rank_fraction": ((1, 1.0), NOT_ESTIMATED),
    "dion_rank_multiple_of": ((1,), NOT_ESTIMATED),
    "trl.sync_ref_model": ((), NOT_ESTIMATED),
    "trl.num_iterations": ((1,), NOT_ESTIMATED),
    "trl.use_liger_loss": ((), NOT_ESTIMATED),
    "trl.vllm_enable_sleep_mode": ((), "an engine that gives its memory back while training"),
    "trl.use_data_producer": ((), NOT_ESTIMATED),
    "trl.async_prefetch": ((), NOT_ESTIMATED),
    "trl.vllm_lora_sync": ((), NOT_ESTIMATED),
}
# Sections that change memory or time and are not read.
SECTIONS = names(
    """
    ebft qat quantization hatchery diffusion_lm diffusion diffusion_decision nemo_gym kd_ mixlora_ spectrum_ mora
    llmcompressor peft bnb_config_kwargs model_quantization_config_kwargs overrides_of_model_config model_config
    context_parallel
    """
)
# Keys that are read to decide an option, for who misspells one.
READ: tuple[str, ...] = names(
    """
    base_model adapter load_in_4bit load_in_8bit lora_r lora_target_modules lora_target_linear lora_dropout
    peft_use_dora sequence_len sample_packing micro_batch_size eval_batch_size eval_sequence_len
    gradient_accumulation_steps batch_size max_steps optimizer bf16 fp16 bfloat16 float16 float32 tf32
    gradient_checkpointing gradient_checkpointing_kwargs activation_offloading attn_implementation flash_attention
    sdp_attention xformers_attention flex_attention sage_attention eager_attention deepspeed fsdp fsdp_version
    fsdp_config dp_shard_size dp_replicate_size tensor_parallel_size context_parallel_size sequence_parallel_degree
    expert_parallel_size rl trl vllm plugins dataloader_num_workers cut_cross_entropy trl.max_completion_length
    trl.use_vllm
    trl.vllm_mode vllm.gpu_memory_utilization liger_rope liger_rms_norm
    liger_glu_activation liger_swiglu liger_cross_entropy liger_fused_linear_cross_entropy
    """
)
FSDP_KEYS = tuple(
    f"fsdp_config.{name}"
    for name in names(
        """
        fsdp_version version activation_checkpointing offload_params cpu_ram_efficient_loading
        cpu_offload_pin_memory state_dict_type final_state_dict_type auto_wrap_policy transformer_layer_cls_to_wrap
        min_num_params reshard_after_forward mixed_precision_policy sharding_strategy
        """
    )
)


def known() -> tuple[str, ...]:
    """All names of keys."""
    return (*READ, *FSDP_KEYS, *IGNORED, *IGNORED_RL, *OTHERS)
