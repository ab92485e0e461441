python3 -m dynamo.trtllm --model-path Qwen/Qwen3-8B --served-model-name Qwen/Qwen3-8B \
  --extra-engine-args engine_configs/agg.yaml --tensor-parallel-size 2 --max-batch-size 64 --modality text
