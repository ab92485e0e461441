python -m mlx_lm server --model mlx-community/Llama-3.2-3B-Instruct-4bit --max-tokens 2048 --trust-remote-code
