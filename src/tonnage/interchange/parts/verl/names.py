"""Names of veRL's keys: verl 0.9.1, verl/trainer/config/_generated_ppo_trainer.yaml and its Megatron counterpart."""

from collections.abc import Mapping

from tonnage.interchange.parts.words import names

# Of sections that several parts of a run have.
_FSDP = names(
    """
        dtype entropy_checkpointing entropy_from_logits_chunk_size entropy_from_logits_with_chunking forward_only
        forward_prefetch fsdp_size full_determinism model_dtype offload_policy optimizer_offload pad_to_length
        pad_to_length_bucket param_offload reshard_after_forward seed strategy ulysses_sequence_parallel_size
        use_no_sync_for_gradient_accumulation use_orig_params use_torch_compile
        """
)
_MEGATRON = names(
    """
        context_parallel_size dist_checkpointing_path dist_checkpointing_prefix dist_ckpt_optim_fully_reshardable
        distrib_optim_fully_reshardable_mem_efficient dtype dynamic_context_parallel entropy_from_logits_chunk_size
        entropy_from_logits_with_chunking expert_model_parallel_size expert_tensor_parallel_size forward_only
        max_seqlen_per_dp_cp_rank optimizer_offload override_ddp_config override_mcore_model_config
        pad_bshd_to_minibatch_max pad_to_length pad_to_length_bucket param_offload pipeline_model_parallel_size seed
        sequence_parallel tensor_model_parallel_size use_dist_checkpointing use_distributed_optimizer use_mbridge
        use_megatron_fsdp use_remove_padding vanilla_mbridge virtual_pipeline_model_parallel_size
        """
)
_OPTIMIZER = names(
    """
        betas clip_grad exp_avg_dtype exp_avg_sq_dtype lr lr_decay_steps lr_decay_style lr_scheduler_type
        lr_warmup_init lr_warmup_steps lr_warmup_steps_ratio lr_wsd_decay_steps lr_wsd_decay_style main_grads_dtype
        min_lr min_lr_ratio muon_coefficient_type muon_extra_scale_factor muon_fp32_matmul_prec
        muon_match_adamw_update_rms muon_momentum muon_nesterov muon_num_ns_steps muon_scalar_optimizer
        muon_scale_mode muon_split_qkv muon_tp_mode num_cycles optimizer optimizer_impl override_optimizer_config
        total_training_steps use_checkpoint_opt_param_scheduler use_layer_wise_distributed_optimizer
        use_precision_aware_optimizer warmup_style weight_decay weight_decay_incr_style zero_indexed_step
        """
)
_MODEL = names(
    """
        custom_chat_template enable_activation_offload enable_gradient_checkpointing exclude_modules external_lib
        hf_config_path lora_adapter_path lora_alpha lora_rank override_config path target_modules tokenizer_path
        trust_remote_code use_fused_kernels use_liger use_remove_padding use_shm
        """
)
_LORA = names(
    """
        a2a_experimental adapter_path alpha dropout dropout_position dtype exclude_modules freeze_language_model
        freeze_vision_model freeze_vision_projection lora_A_init_method lora_B_init_method merge rank target_modules
        type
        """
)
_MTP = names(
    """
        detach_encoder enable enable_rollout enable_train method mtp_loss_scaling_factor num_speculative_tokens
        speculative_algorithm speculative_eagle_topk speculative_num_draft_tokens speculative_num_steps
        """
)
# By section; profilers, checkpoints and quantization-aware training have sections of their own below.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "actor_rollout_ref": names("hybrid_engine nccl_timeout"),
    "actor_rollout_ref.actor": names(
        """
        calculate_entropy calculate_sum_pi_squared clip_ratio clip_ratio_c clip_ratio_high clip_ratio_low
        data_loader_seed entropy_checkpointing entropy_coeff entropy_from_logits_chunk_size
        entropy_from_logits_with_chunking freeze_vision_tower grad_clip kl_loss_coef kl_loss_type loss_agg_mode
        loss_scale_factor pad_to_length ppo_epochs ppo_max_token_len_per_gpu ppo_micro_batch_size
        ppo_micro_batch_size_per_gpu ppo_mini_batch_size rollout_n shuffle strategy tau_neg tau_pos
        ulysses_sequence_parallel_size use_dynamic_bsz use_fused_kernels use_kl_loss use_prefix_grouper
        use_remove_padding use_torch_compile
        """
    ),
    "actor_rollout_ref.actor.fsdp_config": _FSDP,
    "actor_rollout_ref.actor.fsdp_config.wrap_policy": names("min_num_params"),
    "actor_rollout_ref.actor.megatron": _MEGATRON,
    "actor_rollout_ref.actor.megatron.override_transformer_config": names(
        """
        attention_backend recompute_granularity recompute_method recompute_modules recompute_num_layers
        """
    ),
    "actor_rollout_ref.actor.megatron.router_replay": names("mode record_file replay_file"),
    "actor_rollout_ref.actor.optim": _OPTIMIZER,
    "actor_rollout_ref.actor.policy_loss": names(
        """
        clip_cov_lb clip_cov_ratio clip_cov_ub dro_beta kl_cov_ratio loss_mode ppo_kl_coef
        """
    ),
    "actor_rollout_ref.model": _MODEL,
    "actor_rollout_ref.model.fused_kernel_options": names("impl_backend"),
    "actor_rollout_ref.model.lora": _LORA,
    "actor_rollout_ref.model.mtp": _MTP,
    "actor_rollout_ref.model.tiled_mlp": names("enabled num_shards"),
    "actor_rollout_ref.ref": names(
        """
        entropy_checkpointing entropy_from_logits_chunk_size entropy_from_logits_with_chunking
        log_prob_max_token_len_per_gpu log_prob_micro_batch_size log_prob_micro_batch_size_per_gpu
        log_prob_use_dynamic_bsz pad_to_length rollout_n strategy ulysses_sequence_parallel_size use_torch_compile
        """
    ),
    "actor_rollout_ref.ref.fsdp_config": _FSDP,
    "actor_rollout_ref.ref.fsdp_config.wrap_policy": names("min_num_params"),
    "actor_rollout_ref.ref.megatron": names(
        """
        context_parallel_size dist_checkpointing_path dist_checkpointing_prefix dist_ckpt_optim_fully_reshardable
        distrib_optim_fully_reshardable_mem_efficient dtype dynamic_context_parallel entropy_from_logits_chunk_size
        entropy_from_logits_with_chunking expert_model_parallel_size expert_tensor_parallel_size forward_only
        max_seqlen_per_dp_cp_rank optimizer_offload override_ddp_config override_mcore_model_config
        override_transformer_config pad_bshd_to_minibatch_max pad_to_length pad_to_length_bucket param_offload
        pipeline_model_parallel_size seed sequence_parallel tensor_model_parallel_size use_dist_checkpointing
        use_distributed_optimizer use_mbridge use_megatron_fsdp use_remove_padding vanilla_mbridge
        virtual_pipeline_model_parallel_size
        """
    ),
    "actor_rollout_ref.ref.megatron.router_replay": names("mode record_file replay_file"),
    "actor_rollout_ref.rollout": names(
        """
        calculate_log_probs cudagraph_capture_sizes data_parallel_size disable_log_stats do_sample dtype
        enable_chunked_prefill enable_prefix_caching enable_rollout_routing_replay enforce_eager
        expert_parallel_size free_cache_engine full_determinism gpu_memory_utilization ignore_eos layered_summon
        load_format log_prob_max_token_len_per_gpu log_prob_micro_batch_size log_prob_micro_batch_size_per_gpu
        log_prob_use_dynamic_bsz logprobs_mode max_model_len max_num_batched_tokens max_num_seqs mode
        moe_load_balance_metrics_interval mtp multi_stage_wake_up n n_gpus_per_node name nnodes over_sample_rate
        pipeline_model_parallel_size prompt_length qat quantization quantization_config_file response_length
        router_config_path scheduling_policy seed skip_tokenizer_init temperature tensor_model_parallel_size top_k
        top_p
        """
    ),
    "actor_rollout_ref.rollout.agent": names("agent_loop_config_path default_agent_loop num_workers"),
    "actor_rollout_ref.rollout.agent.custom_async_server": names("name path"),
    "actor_rollout_ref.rollout.checkpoint_engine": names(
        """
        backend custom_backend_module engine_kwargs update_weights_bucket_megabytes
        """
    ),
    "actor_rollout_ref.rollout.disaggregation": names(
        """
        bootstrap_port decode_replicas decode_tensor_model_parallel_size enabled ib_device prefill_replicas
        transfer_backend
        """
    ),
    "actor_rollout_ref.rollout.engine_kwargs": names("sglang trtllm vllm"),
    "actor_rollout_ref.rollout.multi_turn": names(
        """
        enable format function_tool_path max_assistant_turns max_parallel_calls max_tool_response_length
        max_user_turns num_repeat_rollouts tokenization_sanity_check_mode tool_config_path
        tool_response_truncate_side use_inference_chat_template
        """
    ),
    "actor_rollout_ref.rollout.prometheus": names("enable file port served_model_name"),
    "actor_rollout_ref.rollout.trace": names(
        """
        backend experiment_name max_samples_per_step_per_worker project_name token2text
        """
    ),
    "actor_rollout_ref.rollout.val_kwargs": names("do_sample n temperature top_k top_p"),
    "algorithm": names("adv_estimator gamma kl_penalty lam norm_adv_by_std_in_grpo use_kl_in_reward use_pf_ppo"),
    "algorithm.filter_groups": names("enable max_inflight_gen_batches max_num_gen_batches metric"),
    "algorithm.kl_ctrl": names("horizon kl_coef target_kl type"),
    "algorithm.pf_ppo": names("reweight_method weight_pow"),
    "algorithm.rollout_correction": names(
        """
        bypass_mode loss_type rollout_is rollout_is_batch_normalize rollout_is_threshold rollout_rs
        rollout_rs_threshold
        """
    ),
    "critic": names(
        """
        cliprange_value data_loader_seed enable forward_max_token_len_per_gpu forward_micro_batch_size
        forward_micro_batch_size_per_gpu grad_clip loss_agg_mode loss_scale_factor nccl_timeout ppo_epochs
        ppo_max_token_len_per_gpu ppo_micro_batch_size ppo_micro_batch_size_per_gpu ppo_mini_batch_size rollout_n
        shuffle strategy ulysses_sequence_parallel_size use_dynamic_bsz
        """
    ),
    "critic.fsdp": _FSDP,
    "critic.fsdp.wrap_policy": names("min_num_params"),
    "critic.megatron": _MEGATRON,
    "critic.megatron.override_transformer_config": names(
        """
        attention_backend recompute_granularity recompute_method recompute_modules recompute_num_layers
        """
    ),
    "critic.megatron.router_replay": names("mode record_file replay_file"),
    "critic.model": _MODEL,
    "critic.model.fused_kernel_options": names("impl_backend"),
    "critic.model.lora": _LORA,
    "critic.model.mtp": _MTP,
    "critic.model.tiled_mlp": names("enabled num_shards"),
    "critic.optim": _OPTIMIZER,
    "custom_reward_function": names("name path"),
    "data": names(
        """
        apply_chat_template_kwargs audio_key dataloader_num_workers filter_overlong_prompts
        filter_overlong_prompts_workers function_tool_path gen_batch_size image_key image_patch_size
        max_prompt_length max_response_length mm_processor_kwargs prompt_key return_full_prompt
        return_multi_modal_inputs return_raw_chat return_raw_input_ids reward_fn_key seed shuffle tokenizer
        tool_config_path train_batch_size train_files train_max_samples truncation trust_remote_code use_shm
        val_batch_size val_files val_max_samples validation_shuffle video_key
        """
    ),
    "data.custom_cls": names("name path"),
    "distillation": names("enabled n_gpus_per_node nnodes teacher_key"),
    "distillation.distillation_loss": names(
        """
        clip_ratio clip_ratio_high clip_ratio_low distillation_loss_coef log_prob_min_clamp loss_max_clamp loss_mode
        policy_loss_mode topk use_policy_gradient use_task_rewards
        """
    ),
    "distillation.teacher_models.teacher_model": names("key model_path num_replicas"),
    "distillation.teacher_models.teacher_model.inference": names(
        """
        cudagraph_capture_sizes data_parallel_size disable_log_stats dtype enable_chunked_prefill
        enable_prefix_caching enforce_eager engine_kwargs expert_parallel_size free_cache_engine
        gpu_memory_utilization limit_images load_format max_model_len max_num_batched_tokens max_num_seqs name
        prompt_length response_length skip_tokenizer_init temperature tensor_model_parallel_size
        """
    ),
    "reward": names("num_workers"),
    "reward.custom_reward_function": names("name path"),
    "reward.reward_manager": names("name source"),
    "reward.reward_manager.module": names("name path"),
    "reward.reward_model": names("enable enable_resource_pool model_path n_gpus_per_node nnodes"),
    "reward.reward_model.rollout": names(
        """
        cudagraph_capture_sizes data_parallel_size disable_log_stats do_sample dtype enable_chunked_prefill
        enable_prefix_caching enforce_eager engine_kwargs expert_parallel_size free_cache_engine full_determinism
        gpu_memory_utilization ignore_eos layered_summon limit_images load_format max_model_len
        max_num_batched_tokens max_num_seqs mtp multi_stage_wake_up n name pipeline_model_parallel_size
        prompt_length quantization quantization_config_file response_length scheduling_policy seed
        skip_tokenizer_init temperature tensor_model_parallel_size top_k top_p
        """
    ),
    "reward.reward_model.rollout.disaggregation": names(
        """
        bootstrap_port decode_replicas decode_tensor_model_parallel_size enabled ib_device prefill_replicas
        transfer_backend
        """
    ),
    "reward.sandbox_fusion": names("max_concurrent memory_limit_mb url"),
    "reward_model": names(
        """
        enable enable_resource_pool n_gpus_per_node nnodes num_workers reward_loop_class_name
        reward_loop_module_path reward_loop_source reward_manager
        """
    ),
    "reward_model.model": names("external_lib path trust_remote_code"),
    "reward_model.rollout": names(
        """
        cudagraph_capture_sizes data_parallel_size disable_log_stats dtype enable_chunked_prefill
        enable_prefix_caching enforce_eager engine_kwargs expert_parallel_size free_cache_engine
        gpu_memory_utilization limit_images load_format max_model_len max_num_batched_tokens max_num_seqs name
        prompt_length response_length skip_tokenizer_init tensor_model_parallel_size
        """
    ),
    "trainer": names(
        """
        balance_batch checkpoint_callback_class critic_warmup default_hdfs_dir default_local_dir
        del_local_ckpt_after_load device esi_redundant_time experiment_name log_val_generations logger
        max_actor_ckpt_to_keep max_critic_ckpt_to_keep n_gpus_per_node nnodes project_name
        ray_wait_register_center_timeout resume_from_path resume_mode rollout_data_dir save_freq test_freq
        total_epochs total_training_steps use_v1 val_before_train val_only validation_data_dir
        """
    ),
    "trainer.v1": names("sync trainer_mode"),
    "trainer.v1.colocate_async": names("num_warmup_batches"),
    "trainer.v1.sampler": names(
        """
        max_off_policy_strategy max_off_policy_threshold sampler_kwargs sync_refill_failed_groups
        """
    ),
    "trainer.v1.sampler.custom_sampler": names("name path"),
    "trainer.v1.separate_async": names("num_warmup_batches parameter_sync_step"),
    "trainer.v1.separate_async.hybrid_rollout": names(
        """
        adaptive_switch_threshold enable_switch switch_cost_window_size switch_threshold_ratio
        switch_threshold_release_steps switch_threshold_step_down switch_threshold_step_up
        """
    ),
}
KNOWN = frozenset(f"{section}.{name}" for section, several in SECTIONS.items() for name in several)
