mlx_lm.generate --model mlx-community/Qwen3-8B-4bit --prompt "Write a story" --max-kv-size 4096 --kv-bits 8
