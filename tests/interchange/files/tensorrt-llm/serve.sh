trtllm-serve meta-llama/Llama-3.1-70B-Instruct --tp_size 4 --max_batch_size 128 --max_num_tokens 8192 \
  --max_seq_len 16384 --kv_cache_free_gpu_memory_fraction 0.85 --host 0.0.0.0 --port 8000 --trust_remote_code \
  --extra_llm_api_options extra-llm-api-config.yml
