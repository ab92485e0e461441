#!/usr/bin/env bash
# One prefill and one decode server, with a proxy in front of them
MODEL=${1:-meta-llama/Llama-3.1-8B-Instruct}
MODEL=meta-llama/Llama-3.1-8B-Instruct
CUDA_VISIBLE_DEVICES=0 vllm serve $MODEL --port 8100 --max-model-len 8192 \
  --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_rank":0,"kv_port":"20001"}' &
CUDA_VISIBLE_DEVICES=1 vllm serve $MODEL --port 8200 --max-model-len 8192 \
  --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer","kv_rank":1,"kv_port":"20002"}' &
python3 proxy.py --port 8000
