#!/bin/bash
# Two nodes of eight; deepspeed finds them in the hostfile.
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
MODEL=meta-llama/Llama-3.1-8B
deepspeed --num_nodes 2 --num_gpus 8 --master_port 29500 run_clm.py \
    --deepspeed zero3_auto.json \
    --model_name_or_path $MODEL \
    --dataset_name wikitext --dataset_config_name wikitext-2-raw-v1 \
    --do_train --bf16 True \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 4 \
    --gradient_checkpointing True \
    --block_size 4096 \
    --learning_rate 2e-5 --num_train_epochs 3 \
    --output_dir out --report_to none
