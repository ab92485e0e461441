# node 0; on node 1: --node-rank 1
export SGLANG_DISAGGREGATION_HEARTBEAT_INTERVAL=5
python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 \
  --tp 16 --dist-init-addr 10.0.0.1:5000 --nnodes 2 --node-rank 0 \
  --trust-remote-code --enable-dp-attention --dp-size 16 --ep-size 16 \
  --context-length 32768 --mem-fraction-static 0.85 --chunked-prefill-size 16384 \
  --speculative-algorithm NEXTN --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2
