dynamo run in=http out=vllm Qwen/Qwen3-8B --tensor-parallel-size 4 --context-length 8192
