python -m sglang.launch_server --model meta-llama/Llama-3.1-8B --enable-lora \
  --lora-paths a=org/a b=org/b --max-loras-per-batch 2 --max-lora-rank 64 --disable-radix-cache \
  --cuda-graph-max-bs 32 --quantization fp8 --speculative-algorithm EAGLE3 \
  --speculative-draft-model-path jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B --speculative-num-steps 5 \
  --speculative-eagle-topk 8 --speculative-num-draft-tokens 32
