"""Options of ours in the flags of other tools.

{value} is the value of the option; a mapping has the flag of each value. Sources: the tools' own definitions: vllm 0.33
(engine/arg_utils.py), sglang 0.5.23 (srt/server_args.py), TensorRT-LLM (llmapi/llm_args.py, trtllm-serve), llama.cpp
(common/arg.cpp), Ollama (docs/faq, envconfig), transformers 5.24 (training_args.py), trl 1.16 (SFTConfig, ModelConfig),
Axolotl 0.14, LLaMA-Factory (hparams), Megatron-LM (training/arguments.py), deepspeed 0.19.8 (runtime/config.py),
torchtitan 0.3 (config/configs.py), torchtune's recipes, Unsloth's FastLanguageModel.
"""

from collections.abc import Mapping
from typing import Any

Flag = str | Mapping[str, str]

_HF: Mapping[str, Flag] = {
    "num_microbatches": "--gradient_accumulation_steps {value}",
    "micro_batch_size": "--per_device_train_batch_size {value}",
    "recompute": {"full": "--gradient_checkpointing true", "none": "--gradient_checkpointing false"},
    "liger": "--use_liger_kernel true",
    "optimizer": {"adamw-8bit": "--optim adamw_8bit"},
    "precision": {"bf16-mixed": "--bf16 true"},
    "attention": "--attn_implementation flash_attention_2",
    "zero_stage": {"3": "--fsdp full_shard", "2": "--fsdp shard_grad_op"},
    "offload_optimizer": "--fsdp 'full_shard offload'",
    "data_loader_workers": "--dataloader_num_workers {value}",
    "save_sharded": '--fsdp_config \'{"state_dict_type": "SHARDED_STATE_DICT"}\'',
}

FLAGS: Mapping[str, Mapping[str, Flag]] = {
    "vllm": {
        "context": "--max-model-len {value}",
        "max_num_seqs": "--max-num-seqs {value}",
        "max_num_batched_tokens": "--max-num-batched-tokens {value}",
        "gpu_memory_utilization": "--gpu-memory-utilization {value}",
        "enforce_eager": "--enforce-eager",
        "graph_sizes": "--max-cudagraph-capture-size {value}",
        "kv_cache": {"fp8": "--kv-cache-dtype fp8"},
        "weights": {
            "fp8": "--quantization fp8",
            "awq": "--quantization awq",
            "nf4": "--quantization bitsandbytes",
        },
        "tensor_parallel_size": "--tensor-parallel-size {value}",
        "pipeline_parallel_size": "--pipeline-parallel-size {value}",
        "expert_parallel_size": "--enable-expert-parallel",
        "weights_on_host": "--cpu-offload-gb {value}",
    },
    "sglang": {
        "context": "--context-length {value}",
        "max_num_seqs": "--max-running-requests {value}",
        "max_num_batched_tokens": "--chunked-prefill-size {value}",
        "gpu_memory_utilization": "--mem-fraction-static {value}",
        "enforce_eager": "--cuda-graph-backend-decode disabled",
        "graph_sizes": "--cuda-graph-max-bs-decode {value}",
        "kv_cache": {"fp8": "--kv-cache-dtype fp8_e5m2"},
        "weights": {"fp8": "--quantization fp8", "awq": "--quantization awq"},
        "tensor_parallel_size": "--tp-size {value}",
        "pipeline_parallel_size": "--pp-size {value}",
        "expert_parallel_size": "--ep-size {value}",
        "weights_on_host": "--cpu-offload-gb {value}",
    },
    "tensorrt-llm": {
        "context": "--max_seq_len {value}",
        "max_num_seqs": "--max_batch_size {value}",
        "max_num_batched_tokens": "--max_num_tokens {value}",
        "gpu_memory_utilization": "--kv_cache_free_gpu_memory_fraction {value}",
        "kv_cache": {"fp8": "kv_cache_config: {dtype: fp8}"},
        "tensor_parallel_size": "--tp_size {value}",
        "pipeline_parallel_size": "--pp_size {value}",
        "expert_parallel_size": "--ep_size {value}",
        "enforce_eager": "cuda_graph_config: null",
    },
    "tgi": {
        "context": "--max-total-tokens {value}",
        "max_num_seqs": "--max-batch-size {value}",
        "max_num_batched_tokens": "--max-batch-prefill-tokens {value}",
        "gpu_memory_utilization": "--cuda-memory-fraction {value}",
        "enforce_eager": "--cuda-graphs 0",
        "kv_cache": {"fp8": "--kv-cache-dtype fp8_e4m3fn"},
        "weights": {"fp8": "--quantize fp8", "nf4": "--quantize bitsandbytes-nf4"},
        "tensor_parallel_size": "--num-shard {value}",
    },
    "llama-cpp": {
        "context": "-c {value}",
        "max_num_seqs": "-np {value}",
        "max_num_batched_tokens": "-ub {value}",
        "kv_cache": {"q8_0": "-fa on -ctk q8_0 -ctv q8_0", "fp8": "-fa on -ctk q8_0 -ctv q8_0"},
        "layers_on_accelerator": "-ngl {value}",
        "expert_layers_on_host": "--n-cpu-moe {value}",
        "pipeline_parallel_size": "-sm layer",
        "tensor_parallel_size": "-sm row",
        "attention": "-fa on",
    },
    "ollama": {
        "context": "OLLAMA_CONTEXT_LENGTH={value}",
        "max_num_seqs": "OLLAMA_NUM_PARALLEL={value}",
        "kv_cache": {
            "q8_0": "OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0",
            "fp8": "OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0",
        },
        "layers_on_accelerator": "PARAMETER num_gpu {value}",
        "pipeline_parallel_size": "OLLAMA_SCHED_SPREAD=1",
        "attention": "OLLAMA_FLASH_ATTENTION=1",
        "stop_others": "OLLAMA_MAX_LOADED_MODELS=1",
    },
    "transformers": {**_HF},
    "trl": {
        **_HF,
        "sequence_length": "--max_length {value}",
        "method": {"lora": "--use_peft true", "qlora": "--use_peft true --load_in_4bit true"},
        "base_weights": "--load_in_4bit true",
        "offload_activations": "--activation_offloading true",
    },
    "axolotl": {
        "micro_batch_size": "micro_batch_size: {value}",
        "num_microbatches": "gradient_accumulation_steps: {value}",
        "recompute": {"full": "gradient_checkpointing: true", "none": "gradient_checkpointing: false"},
        "sequence_length": "sequence_len: {value}",
        "liger": "liger_fused_linear_cross_entropy: true",
        "optimizer": {"adamw-8bit": "optimizer: adamw_8bit"},
        "method": {"lora": "adapter: lora", "qlora": "adapter: qlora, load_in_4bit: true"},
        "base_weights": "load_in_4bit: true",
        "attention": "flash_attention: true",
        "zero_stage": {
            "3": "deepspeed: deepspeed_configs/zero3_bf16.json",
            "2": "deepspeed: deepspeed_configs/zero2.json",
        },
        "offload_optimizer": "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json",
        "offload_activations": "activation_offloading: true",
        "context_parallel_size": "context_parallel_size: {value}",
        "tensor_parallel_size": "tensor_parallel_size: {value}",
        "data_loader_workers": "dataloader_num_workers: {value}",
    },
    "llamafactory": {
        "micro_batch_size": "per_device_train_batch_size: {value}",
        "num_microbatches": "gradient_accumulation_steps: {value}",
        "recompute": {
            "full": "disable_gradient_checkpointing: false",
            "none": "disable_gradient_checkpointing: true",
        },
        "sequence_length": "cutoff_len: {value}",
        "liger": "enable_liger_kernel: true",
        "optimizer": {"adamw-8bit": "optim: adamw_8bit"},
        "method": {"lora": "finetuning_type: lora", "qlora": "finetuning_type: lora, quantization_bit: 4"},
        "base_weights": "quantization_bit: 4",
        "attention": "flash_attn: fa2",
        "zero_stage": {"3": "deepspeed: ds_z3_config.json", "2": "deepspeed: ds_z2_config.json"},
        "offload_optimizer": "deepspeed: ds_z3_offload_config.json",
        "data_loader_workers": "dataloader_num_workers: {value}",
    },
    "ms-swift": {
        **_HF,
        "sequence_length": "--max_length {value}",
        "optimizer": {"adamw-8bit": "--optim adamw_8bit"},
        "method": {"lora": "--tuner_type lora", "qlora": "--tuner_type lora --quant_method bnb --quant_bits 4"},
        "base_weights": "--quant_method bnb --quant_bits 4",
        "zero_stage": {"3": "--deepspeed zero3", "2": "--deepspeed zero2"},
        "offload_optimizer": "--deepspeed zero3_offload",
    },
    "verl": {
        "micro_batch_size": "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={value}",
        "recompute": {
            "full": "actor_rollout_ref.model.enable_gradient_checkpointing=True",
            "none": "actor_rollout_ref.model.enable_gradient_checkpointing=False",
        },
        "offload_optimizer": "actor_rollout_ref.actor.fsdp_config.offload_policy=True",
        "offload_activations": "actor_rollout_ref.model.enable_activation_offload=True",
        "engine_sleeps": "actor_rollout_ref.rollout.free_cache_engine=True",
        "context_parallel_size": "actor_rollout_ref.actor.ulysses_sequence_parallel_size={value}",
    },
    "openrlhf": {
        "recompute": {"full": "--model.gradient-checkpointing-enable (PPO: --actor.gradient-checkpointing-enable)"},
        "zero_stage": "--ds.zero-stage {value}",
        "engine_sleeps": "--vllm.enable-sleep",
        "offload_optimizer": "--ds.adam-offload",
        "tensor_parallel_size": "--ds.tensor-parallel-size {value}",
        "context_parallel_size": "--ds.ring-attn-size {value}",
    },
    "unsloth": {
        "micro_batch_size": "per_device_train_batch_size={value}",
        "num_microbatches": "gradient_accumulation_steps={value}",
        "recompute": 'use_gradient_checkpointing="unsloth"',
        "sequence_length": "max_seq_length={value}",
        "optimizer": {"adamw-8bit": 'optim="adamw_8bit"'},
        "method": {"qlora": "load_in_4bit=True"},
        "base_weights": "load_in_4bit=True",
    },
    "megatron": {
        "micro_batch_size": "--micro-batch-size {value}",
        "recompute": {
            "selective": "--recompute-granularity selective",
            "full": "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
        },
        "sequence_length": "--seq-length {value}",
        "loss": "--cross-entropy-loss-fusion",
        "zero_stage": "--use-distributed-optimizer",
        "sequence_parallel": "--sequence-parallel",
        "tensor_parallel_size": "--tensor-model-parallel-size {value}",
        "pipeline_parallel_size": "--pipeline-model-parallel-size {value}",
        "context_parallel_size": "--context-parallel-size {value}",
        "context_parallel_method": "--cp-comm-type {value}",
        "expert_parallel_size": "--expert-model-parallel-size {value}",
        "expert_tensor_parallel_size": "--expert-tensor-parallel-size {value}",
        "offload_optimizer": "--optimizer-cpu-offload",
        "attention": "--attention-backend flash",
        "data_loader_workers": "--num-workers {value}",
        "save_sharded": "--ckpt-format torch_dist",
    },
    "deepspeed": {
        "micro_batch_size": '"train_micro_batch_size_per_gpu": {value}',
        "num_microbatches": '"gradient_accumulation_steps": {value}',
        "zero_stage": '"zero_optimization": {"stage": {value}}',
        "offload_optimizer": '"offload_optimizer": {"device": "cpu"}',
        "offload_parameters": '"offload_param": {"device": "cpu"}',
        "recompute": "model.gradient_checkpointing_enable()",
        "save_sharded": '"stage3_gather_16bit_weights_on_model_save": false',
    },
    "torchtitan": {
        "micro_batch_size": "--training.local_batch_size {value}",
        "global_batch_size": "--training.global_batch_size {value}",
        "recompute": {
            "selective": "activation_checkpoint:selective",
            "full": "activation_checkpoint:full",
            "none": "activation_checkpoint:none",
        },
        "sequence_length": "--training.seq_len {value}",
        "tensor_parallel_size": "--parallelism.tensor_parallel_degree {value}",
        "pipeline_parallel_size": "--parallelism.pipeline_parallel_degree {value}",
        "context_parallel_size": "--parallelism.context_parallel_degree {value}",
        "sequence_parallel": "--parallelism.enable_sequence_parallel",
        "replicate_size": "--parallelism.data_parallel_replicate_degree {value}",
        "compile": "--compile.enable",
    },
    "torchtune": {
        "micro_batch_size": "batch_size={value}",
        "recompute": "enable_activation_checkpointing=True",
        "sequence_length": "tokenizer.max_seq_len={value}",
        "offload_activations": "enable_activation_offloading=True",
        "optimizer": {"adamw-8bit": "optimizer=bitsandbytes.optim.PagedAdamW8bit"},
        "optimizer_in_backward": "optimizer_in_bwd=True",
    },
    "accelerate": {
        "zero_stage": {"3": "--use_fsdp --fsdp_reshard_after_forward true", "2": "--use_deepspeed --zero_stage 2"},
        "offload_optimizer": "--offload_optimizer_device cpu",
    },
    "pytorch": {
        "recompute": "torch.utils.checkpoint",
        "data_loader_workers": "DataLoader(num_workers={value})",
        "attention": "F.scaled_dot_product_attention",
    },
}
# Of every tool that runs PyTorch.
OF_PYTORCH: Mapping[str, Flag] = {
    "expandable_segments": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "other_gpu": "CUDA_VISIBLE_DEVICES={value}",
}
# Of a container or a scheduler, whatever runs in it.
OF_HOST: Mapping[str, Flag] = {
    "shm_size": "docker run --shm-size={value} (or --ipc=host)",
    "host_memory_limit": "#SBATCH --mem={value} (a container: --memory, resources.limits.memory)",
}
# Options that the same flag says: how many requests run, and how many are to run.
SAME_FLAG = {"concurrency": "max_num_seqs"}
OFF = (False, None, "none")  # values that a flag without one turns on
NO_PYTORCH = frozenset({"llama-cpp", "ollama", "jax", "host"})


def flag_of(tool: str, option: str, value: Any) -> str | None:
    """The option in the flags of a tool; None where it has none for it."""
    own = FLAGS.get(tool, {}).get(SAME_FLAG.get(option, option))
    if own is None and tool not in NO_PYTORCH:
        own = OF_PYTORCH.get(option)
    if own is None:
        own = OF_HOST.get(option)
    if own is None:
        return None
    template = own if isinstance(own, str) else own.get(str(value))
    if own is template and "{value}" not in own and value in OFF:
        return None
    return None if template is None else template.replace("{value}", str(value))
