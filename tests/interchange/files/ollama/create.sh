cat > Modelfile <<EOF
FROM hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q6_K
ADAPTER ./one.gguf
PARAMETER num_ctx 8192
EOF
OLLAMA_GPU_OVERHEAD=1073741824 ollama serve &
ollama create helper -f Modelfile && ollama run helper
