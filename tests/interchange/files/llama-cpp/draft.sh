llama-server -m Qwen3-32B-Q4_K_M.gguf -md Qwen3-0.6B.gguf --draft-max 8 --draft-min 1 \
  -sm row -ts 1,1 -c 16384 --lora adapter.gguf --override-tensor "blk\.0\.=CPU"
