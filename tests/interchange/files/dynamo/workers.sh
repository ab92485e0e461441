#!/bin/bash
python -m dynamo.frontend --router-mode kv &
CUDA_VISIBLE_DEVICES=0 python3 -m dynamo.vllm --model Qwen/Qwen3-8B --is-decode-worker --enforce-eager &
CUDA_VISIBLE_DEVICES=1 DYN_VLLM_KV_EVENT_PORT=20081 python3 -m dynamo.vllm --model Qwen/Qwen3-8B \
  --is-prefill-worker --enforce-eager
