# Wide expert parallelism over two nodes, run on each with its own rank.
vllm serve deepseek-ai/DeepSeek-V3 -dp 16 --data-parallel-size-local 8 \
  --data-parallel-address 10.0.0.1 --data-parallel-rpc-port 13345 \
  --enable-expert-parallel --trust-remote-code --all2all-backend deepep_low_latency \
  --max-model-len 16384 --max-num-batched-tokens 4096 --api-server-count 4
