python3 -m vllm.entrypoints.openai.api_server --model mistralai/Mistral-7B-Instruct-v0.3 \
  --dtype half --max-model-len 8192 --swap-space 4 --disable-log-requests \
  --speculative-model [ngram] --num-speculative-tokens 5 --ngram-prompt-lookup-max 4 --use-v2-block-manager
