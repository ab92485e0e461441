"""What the files of a model say: config.json, safetensors, GGUF."""
