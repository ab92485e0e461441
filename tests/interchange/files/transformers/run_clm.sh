#!/bin/bash
torchrun --nproc_per_node 8 --nnodes 2 --node_rank 0 --master_addr 10.0.0.1 examples/pytorch/language-modeling/run_clm.py \
    --model_name_or_path Qwen/Qwen2.5-1.5B \
    --dataset_name wikitext \
    --dataset_config_name wikitext-2-raw-v1 \
    --per_device_train_batch_size 4 \
    --do_train \
    --bf16 \
    --use_liger_kernel \
    --output_dir /tmp/test-clm
