#!/usr/bin/env bash
docker run -it --rm --gpus '"device=0,1"' --shm-size 10.24g \
  -v $HOME/.cache:/root/.cache -e HF_TOKEN=x -p8000:8000 \
  vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-32B --tensor-parallel-size 2 --max-model-len 8192
