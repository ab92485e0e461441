"""What a fix is called where a tool has no flag for it."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.message import Message

# {value} is that of the option.
WORDS: Mapping[str, str] = {
    "context": "a shorter context: {value} tokens",
    "max_num_seqs": "fewer requests at the same time",
    "concurrency": "fewer requests at the same time",
    "max_num_batched_tokens": "fewer tokens in one prefill step",
    "gpu_memory_utilization": "another share of the GPU's memory: {value}",
    "enforce_eager": "no CUDA graphs",
    "graph_sizes": "CUDA graphs of fewer batch sizes",
    "kv_cache": "a KV cache in 8 bits",
    "weights": "a checkpoint in fewer bits (FP8, AWQ, GGUF Q4_K_M)",
    "tensor_parallel_size": "more GPUs a replica: tensor parallelism {value}",
    "pipeline_parallel_size": "pipeline parallelism {value}",
    "context_parallel_size": "context parallelism {value}",
    "expert_parallel_size": "experts over more GPUs",
    "weights_on_host": "a part of the weights in host memory",
    "layers_on_accelerator": "fewer layers on the GPU",
    "expert_layers_on_host": "experts in host memory",
    "micro_batch_size": "a micro-batch of {value}, with more accumulation steps",
    "global_batch_size": "{value} sequences a step",
    "num_microbatches": "{value} accumulation steps",
    "recompute": "activation checkpointing",
    "sequence_length": "a shorter sequence: {value} tokens",
    "liger": "a fused linear cross-entropy (Liger), which makes no logits of the whole batch",
    "loss": "a chunked or fused cross-entropy",
    "optimizer": "8-bit AdamW",
    "optimizer_in_backward": "the optimizer's update inside the backward pass",
    "precision": "weights and gradients in 16 bits",
    "compile": "torch.compile",
    "sequence_parallel": "sequence parallelism beside tensor parallelism",
    "context_parallel_method": "context parallelism by {value}",
    "expert_tensor_parallel_size": "tensor parallelism {value} of the experts",
    "replicate_size": "{value} replicas of the shards",
    "method": "LoRA or QLoRA",
    "base_weights": "a base model in 4 bits",
    "attention": "FlashAttention",
    "zero_stage": "shards over the data-parallel ranks (ZeRO 3, FSDP full shard)",
    "offload_optimizer": "optimizer states in host memory",
    "offload_parameters": "parameters in host memory",
    "offload_activations": "activations in host memory",
    "expandable_segments": "expandable segments in the allocator",
    "other_gpu": "a GPU that nothing else uses",
    "stop_others": "the other processes stopped",
    "engine_sleeps": "an engine that gives its memory back while the actor trains",
    "data_loader_workers": "{value} data loader workers",
    "shm_size": "a larger /dev/shm: {value}",
    "host_memory_limit": "more host memory: {value}",
    "host_memory": "a node with more host memory, or fewer processes that each load the whole model",
    "low_cpu_memory": "weights loaded straight to the GPU, by one process at a time",
    "save_sharded": "a checkpoint in shards, not gathered on one rank",
    "memory_margin": "memory left free for NCCL and libraries: all changes that free memory on the GPU",
    "on": "{value}",
    "device_map": "device_map='auto'",
    "larger_gpu": "a GPU with more memory, or more GPUs",
    "lower_batch": "a smaller batch or shorter sequences",
    "smaller_model": "a smaller model, or one in fewer bits",
    "swap": "more swap",
}


def words_of(option: str, value: Any) -> str:
    """The option in words."""
    return Message(WORDS[option], value=value)
