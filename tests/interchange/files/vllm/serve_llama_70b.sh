#!/bin/bash
# Llama 3.1 70B in FP8 on four H100s
export VLLM_LOGGING_LEVEL=INFO
export VLLM_WORKER_MULTIPROC_METHOD=spawn
MODEL=meta-llama/Llama-3.1-70B-Instruct

vllm serve $MODEL \
  --tensor-parallel-size 4 \
  --quantization fp8 \
  --kv-cache-dtype fp8 \
  --max-model-len 32k \
  --max-num-seqs 256 \
  --gpu-memory-utilization 0.95 \
  --enable-prefix-caching \
  --served-model-name llama-70b \
  --host 0.0.0.0 --port 8000   # behind nginx
