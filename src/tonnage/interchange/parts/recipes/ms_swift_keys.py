"""Keys of ms-swift 4.6 by what they change: swift/arguments/*.py, swift/trainers/arguments.py, swift/rlhf_trainers."""

from collections.abc import Mapping

from tonnage.interchange.parts.hugging_face.keys import NOT_ESTIMATED
from tonnage.interchange.parts.recipes.trainer_arguments import IGNORED as OF_TRAINER
from tonnage.interchange.parts.recipes.trainer_arguments import OF_FSDP
from tonnage.interchange.parts.recipes.trainer_arguments import OTHERS as OTHERS_OF_TRAINER
from tonnage.interchange.parts.recipes.trainer_arguments import READ as READ_OF_TRAINER
from tonnage.interchange.parts.words import names

# Settings of ways of tuning and of objectives that are not estimated stand here too: their own key says so.
IGNORED = names(
    """
    swanlab_token swanlab_project swanlab_workspace swanlab_exp_name swanlab_notification_method swanlab_webhook_url
    swanlab_secret swanlab_sender_email swanlab_receiver_email swanlab_smtp_server swanlab_smtp_port
    swanlab_email_language swanlab_mode add_version create_checkpoint_symlink load_args load_data_args
    use_chat_template loss_scale lora_alpha lora_bias lora_dtype lorap_lr_ratio use_rslora init_weights
    lora_ga_batch_size lora_ga_iters lora_ga_max_length lora_ga_direction lora_ga_scale lora_ga_stable_gamma
    tuner_backend custom_register_path external_plugins model_kwargs enable_npu_model_patch packing_num_proc
    packing_strategy lazy_tokenize use_hf ignore_args_error use_swift_lora dataset val_dataset cached_dataset
    cached_val_dataset split_dataset_ratio dataset_num_proc load_from_cache_file dataset_shuffle val_dataset_shuffle
    streaming interleave_prob stopping_strategy shuffle_buffer_size download_mode columns strict
    disable_auto_column_mapping model_name model_author custom_dataset_info max_new_tokens temperature top_k top_p
    min_p repetition_penalty num_beams stream stop_words logprobs top_logprobs structured_outputs_regex model_type
    model_revision task_type new_special_tokens problem_type rope_scaling max_model_len local_repo_path init_strategy
    template system truncation_strategy agent_template norm_bbox padding_side template_backend response_prefix
    enable_thinking preserve_thinking add_non_thinking_prefix disable_ignore_empty_think is_binary_loss_scale
    check_model acc_strategy train_dataloader_shuffle max_epochs aligner_lr vit_lr ds3_gather_for_generation
    resume_only_model loss_type eval_metric callbacks early_stop_interval eval_use_evalscope eval_dataset
    eval_dataset_args eval_limit eval_generation_config extra_eval_args safe_serialization max_shard_size
    use_logits_to_keep enable_channel_loss enable_dft_loss router_aux_loss_coef dataloader_persistent_workers
    use_ray ray_exp_name device_groups use_flash_ckpt beta label_smoothing rpo_alpha ld_alpha discopop_tau
    loss_weights cpo_alpha simpo_gamma desirable_weight undesirable_weight center_rewards_coefficient lmbda
    num_generations reward_funcs reward_weights log_completions max_completion_length epsilon epsilon_high delta
    cosine_min_len_value_wrong cosine_max_len_value_wrong cosine_min_len_value_correct cosine_max_len_value_correct
    cosine_max_len repetition_n_grams repetition_max_penalty reward_model_plugin multi_turn_scheduler max_turns
    completion_length_limit_scope dynamic_sample max_resample_times overlong_filter soft_max_length
    soft_cache_length scale_rewards log_entropy top_entropy_quantile importance_sampling_level advantage_estimator
    kl_in_reward generation_batch_size steps_per_generation num_generations_eval wandb_log_unique_prompts
    vllm_server_base_url vllm_server_host vllm_server_port vllm_server_timeout vllm_server_group_port
    vllm_server_pass_dataset vllm_tensor_parallel_size vllm_pipeline_parallel_size vllm_enable_expert_parallel
    vllm_max_num_seqs vllm_max_model_len vllm_disable_custom_all_reduce vllm_enforce_eager vllm_limit_mm_per_prompt
    vllm_max_lora_rank vllm_enable_prefix_caching vllm_use_async_engine vllm_reasoning_parser
    vllm_disable_cascade_attn vllm_data_parallel_size vllm_engine_kwargs vllm_gpu_memory_utilization vllm_mode
    use_vllm sleep_level enable_flattened_weight_sync ref_model_sync_steps ref_model_mixup_alpha dataset_name
    custom_train_dataset_path custom_val_dataset_path system_prompt model_id local_dir check_dataset_strategy
    reward_model_type reward_model_revision reward_template ref_model_type ref_model_revision teacher_adapters
    teacher_model_type teacher_model_revision teacher_model_server teacher_tag_key teacher_kl_coef seq_kd
    gkd_logits_topk num_ppo_epochs whiten_rewards kl_coef cliprange vf_coef cliprange_value gamma lam num_mini_batches
    local_rollout_forward_batch_size num_sample_generations response_length missing_eos_penalty fourier_n_frequency
    fourier_scaling boft_block_size boft_block_num boft_n_butterfly_factor boft_dropout vera_projection_prng_key
    vera_dropout vera_d_initial adapter_act adapter_length adalora_tinit adalora_tfinal adalora_deltaT adalora_beta1
    adalora_beta2 adalora_orth_reg_weight llamapro_num_groups reft_layer_key reft_layers reft_intervention_type
    reft_args decision_drop_instructions decision_subsample_options decision_state_as_text decision_shuffle_fields
    hqq_axis galore_target_modules galore_rank galore_update_proj_gap galore_scale galore_proj_type
    galore_optim_per_parameter galore_with_embedding galore_proj_quant galore_proj_bits galore_proj_group_size
    galore_cos_threshold galore_gamma_proj galore_queue_size vllm_quantization vllm_mm_processor_cache_gb
    vllm_speculative_config chord_sft_per_device_train_batch_size chord_enable_phi_function chord_mu_warmup_steps
    chord_mu_decay_steps chord_mu_peak chord_mu_valley use_gym_env gym_env tau_pos tau_neg advantage_reweight
    rlsd_lambda rlsd_reweight_clip_range rlsd_lambda_warmup_steps rlsd_lambda_decay_steps rlsd_negative_only
    sdar_loss_coef sdar_gate_beta real_tau fipo_decay_rate fipo_clip_range fipo_clip_high_only fipo_safety_threshold
    rollout_importance_sampling_mode rollout_importance_sampling_threshold log_rollout_offpolicy_metrics
    off_policy_sequence_mask_delta
    """
)
OTHERS: Mapping[str, tuple[tuple[object, ...], str]] = {
    "freeze_parameters": (([],), "weights that are frozen by their names are estimated as training"),
    "freeze_parameters_regex": ((), "weights that are frozen by their names are estimated as training"),
    "freeze_parameters_ratio": ((0, 0.0, "0", "0."), "weights that are frozen are estimated as training"),
    "trainable_parameters": (([],), NOT_ESTIMATED),
    "trainable_parameters_regex": ((), NOT_ESTIMATED),
    "freeze_llm": (("false",), NOT_ESTIMATED),
    "freeze_vit": ((True, "true"), NOT_ESTIMATED),
    "freeze_aligner": ((True, "true"), NOT_ESTIMATED),
    "target_parameters": ((), "adapters beside stacked experts: those beside linear layers are estimated"),
    "modules_to_save": (([],), NOT_ESTIMATED),
    "adapters": (([],), "adapters that are loaded are estimated as new ones"),
    "experts_impl": (("grouped_mm", "eager"), "experts of another implementation"),
    "num_labels": ((), "a head of another size"),
    "device_map": (("auto",), NOT_ESTIMATED),
    "max_memory": ((), NOT_ESTIMATED),
    "max_pixels": ((), NOT_ESTIMATED),
    "MAX_PIXELS": ((), NOT_ESTIMATED),
    "VIDEO_MAX_PIXELS": ((), NOT_ESTIMATED),
    "FPS_MAX_FRAMES": ((), NOT_ESTIMATED),
    "vit_gradient_checkpointing": ((True, "true"), "a vision tower of its own checkpointing"),
    "optimizer": ((), NOT_ESTIMATED),
    "mrl_dims": ((), NOT_ESTIMATED),
    "use_galore": (("false",), NOT_ESTIMATED),
    "galore_quantization": (("false",), NOT_ESTIMATED),
    "lisa_activated_layers": ((0, "0"), "LISA is not estimated: all layers train"),
    "lisa_step_interval": ((20, "20"), "LISA is not estimated: all layers train"),
    "ref_model": ((), NOT_ESTIMATED),
    "ref_adapters": (([],), NOT_ESTIMATED),
    "reward_model": ((), NOT_ESTIMATED),
    "reward_adapters": (([],), NOT_ESTIMATED),
    "teacher_model": ((), NOT_ESTIMATED),
    "teacher_deepspeed": ((), NOT_ESTIMATED),
    "offload_teacher_model": (("false",), NOT_ESTIMATED),
    "sync_ref_model": (("false",), NOT_ESTIMATED),
    "num_iterations": ((1, "1"), NOT_ESTIMATED),
    "async_generate": (("false",), NOT_ESTIMATED),
    "vllm_enable_lora": (("false",), NOT_ESTIMATED),
    "move_model_batches": ((), NOT_ESTIMATED),
    "offload_optimizer": (("false",), "optimizer states that leave while an engine generates"),
    "offload_model": (("false",), "weights that leave while an engine generates"),
    "quant_method": ((), NOT_ESTIMATED),
    "reft_rank": ((4, "4"), NOT_ESTIMATED),
    "vera_rank": ((256, "256"), NOT_ESTIMATED),
    "adalora_target_r": ((8, "8"), NOT_ESTIMATED),
    "adalora_init_r": ((12, "12"), NOT_ESTIMATED),
    "llamapro_num_new_blocks": ((4, "4"), NOT_ESTIMATED),
    "sft_alpha": ((0, "0", 0.0), NOT_ESTIMATED),
    "chord_sft_dataset": (([],), NOT_ESTIMATED),
}
READ = names(
    """
    model tuner_type lora_rank lora_dropout target_modules target_regex use_dora quant_bits quant_method
    bnb_4bit_quant_type bnb_4bit_use_double_quant bnb_4bit_compute_dtype bnb_4bit_quant_storage torch_dtype attn_impl
    max_length packing packing_length padding_free sequence_parallel_size deepspeed_autotp_size
    zero_hpz_partition_size rlhf_type ENV
    """
)


def known() -> tuple[str, ...]:
    """All names of keys."""
    sections = tuple(f"fsdp_config.{name}" for name in OF_FSDP)
    return (*READ, *READ_OF_TRAINER, *IGNORED, *OTHERS, *OF_TRAINER, *OTHERS_OF_TRAINER, *sections)
