export NPROC_PER_NODE=8
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
swift rlhf \
    --rlhf_type grpo \
    --model Qwen/Qwen2.5-7B-Instruct \
    --tuner_type full \
    --reward_funcs accuracy format \
    --use_vllm true \
    --vllm_mode colocate \
    --vllm_gpu_memory_utilization 0.5 \
    --dataset AI-MO/NuminaMath-TIR#1000 \
    --max_length 4096 \
    --max_completion_length 2048 \
    --num_generations 8 \
    --per_device_train_batch_size 8 \
    --deepspeed zero2 \
    --beta 0.0
