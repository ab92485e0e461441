NNODES=2 \
NODE_RANK=0 \
MASTER_ADDR=127.0.0.1 \
NPROC_PER_NODE=8 \
swift pt \
    --model Qwen/Qwen2.5-7B \
    --train_type full \
    --dataset swift/chinese-c4 \
    --torch_dtype bfloat16 \
    --streaming true \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 4 \
    --packing true \
    --attn_impl flash_attn \
    --max_steps 10000 \
    --max_length 8192 \
    --deepspeed zero3 \
    --output_dir output
