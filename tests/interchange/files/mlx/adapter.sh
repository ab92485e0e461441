mlx_lm.chat --model mlx-community/Qwen3-8B-4bit --adapter-path ./adapters --temp 0.6
