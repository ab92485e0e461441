#!/bin/bash
accelerate launch --config_file fsdp2.yaml --num_processes 4 --fsdp_offload_params true train.py \
    --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 4 --gradient_accumulation_steps 2 \
    --max_seq_length 2048 --bf16 True --optim adamw_torch --save_strategy epoch
