docker run -p 8080:8080 -v /path/to/models:/models --gpus all ghcr.io/ggml-org/llama.cpp:server-cuda \
  -m /models/gemma-3-27b-it-Q4_K_M.gguf -c 8192 -sm none --mmproj /models/mmproj.gguf
