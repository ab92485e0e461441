#!/bin/bash
# LoRA, with an engine that stays awake beside the actor
N_GPUS=4
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=rloo \
    data.max_prompt_length=1024 data.max_response_length=3072 \
    actor_rollout_ref.model.path=Qwen/Qwen3-14B \
    actor_rollout_ref.model.lora_rank=64 \
    actor_rollout_ref.model.lora_alpha=32 \
    actor_rollout_ref.model.target_modules=all-linear \
    actor_rollout_ref.actor.strategy=fsdp2 \
    actor_rollout_ref.actor.fsdp_config.model_dtype=bf16 \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.3 \
    actor_rollout_ref.rollout.free_cache_engine=False \
    actor_rollout_ref.rollout.load_format=safetensors \
    actor_rollout_ref.rollout.n=8 \
    trainer.n_gpus_per_node=${N_GPUS} trainer.nnodes=1
