python -m sglang.launch_server --model-path Qwen/Qwen3-32B --disaggregation-mode prefill --tp 2 \
  --disaggregation-ib-device mlx5_0 --port 30000 &
python -m sglang.launch_server --model-path Qwen/Qwen3-32B --disaggregation-mode decode --tp 2 --base-gpu-id 2 \
  --disaggregation-ib-device mlx5_0 --port 30001 &
python -m sglang.launch_server --model-path Qwen/Qwen3-32B --disaggregation-mode decode --tp 2 --base-gpu-id 4 \
  --disaggregation-ib-device mlx5_0 --port 30002 &
python -m sglang_router.launch_router --pd-disaggregation --prefill http://127.0.0.1:30000
