docker run --runtime nvidia --gpus all -v ~/.cache/huggingface:/root/.cache/huggingface \
  --env "HF_TOKEN=$HF_TOKEN" -p 8000:8000 --ipc=host \
  vllm/vllm-openai:v0.11.0 \
  --model Qwen/Qwen3-8B --enable-lora --max-loras 4 --max-lora-rank 32 \
  --lora-modules sql=/adapters/sql chat=/adapters/chat --enforce-eager --cpu-offload-gb 2
