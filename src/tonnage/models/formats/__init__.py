"""Readers of a model's files: config.json, safetensors, GGUF."""
