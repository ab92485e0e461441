torchrun --nnodes=64 --nproc_per_node=8 --rdzv_backend c10d --rdzv_endpoint="head:29500" \
    --local-ranks-filter 0 --role rank --tee 3 -m torchtitan.train --module llama3 --config llama3_405b \
    --parallelism.pipeline_parallel_degree 8 --parallelism.pipeline_parallel_schedule Interleaved1F1B \
    --parallelism.pipeline_parallel_layers_per_stage=4 --training.local_batch_size 32 \
    --training.disable_cuda_graphs --parallelism.data_parallel_shard_degree -1
