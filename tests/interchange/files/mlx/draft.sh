mlx_lm.server --model mlx-community/Qwen3-8B-4bit --draft-model Qwen/Qwen3-0.6B --num-draft-tokens 4
