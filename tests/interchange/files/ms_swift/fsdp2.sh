NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B --tuner_type full --dataset x --max_length 8192 \
    --fsdp fsdp2 --gradient_checkpointing false --attn_impl flash_attn --optim adamw_torch
