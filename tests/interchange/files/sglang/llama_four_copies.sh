sglang serve --model-path meta-llama/Llama-3.1-8B-Instruct --dp 4 --max-running-requests 128 \
  --kv-cache-dtype fp8_e5m2 --attention-backend fa3 --enable-metrics --host 0.0.0.0
