srun -N 2 --ntasks 16 --ntasks-per-node 8 --mpi=pmix trtllm-llmapi-launch \
  trtllm-serve deepseek-ai/DeepSeek-V3 --tp_size 16 --ep_size 4 --gpus_per_node 8 --max_beam_width 2
