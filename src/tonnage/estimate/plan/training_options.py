"""What may be said about a training run: every option with its unit, what it is, and its default."""

from msgspec import Struct


class TrainingOptions(Struct, frozen=True, kw_only=True):
    """What the user may say about a training run; None: not said, which is the default, and the answer's question says why.

    - sequence_length [tokens]: of each sequence (default: the model's context, at most 4096)
    - micro_batch_size [sequences]: of one forward pass of one replica (default: 1)
    - global_batch_size [sequences]: of one step of all replicas
    - num_microbatches [micro-batches]: of one replica in a step (default: pipeline stages)
    - tensor_parallel_size [ranks]: that share each matrix (default: 1)
    - sequence_parallel [switch]: cut norms and residuals over tensor ranks (default: on with tensor parallelism)
    - pipeline_parallel_size [ranks]: pipeline stages (default: 1)
    - virtual_pipeline_size [chunks]: interleaved on each stage (default: 1)
    - pipeline_schedule [name]: gpipe, 1f1b, interleaved-1f1b, interleaved-zero-bubble, zbv or dualpipev, as the runtime has them (default: 1f1b, interleaved with several chunks)
    - context_parallel_size [ranks]: that share a sequence (default: 1)
    - expert_parallel_size [ranks]: that share a layer's experts (default: 1)
    - expert_tensor_parallel_size [ranks]: that share an expert (default: tensor_parallel_size, or 1 with experts spread)
    - data_parallel_size [ranks]: replicas that see different sequences (default: the rest of the cluster)
    - zero_stage [stage]: 0 shards nothing, 1 the optimizer, 2 and gradients, 3 and weights (default: the runtime's own)
    - recompute [policy]: none, selective, selective-op (torchtitan's) or full (default: none)
    - attention [kernel]: flash, sdpa (as PyTorch chooses), efficient (its memory-efficient kernel alone, with repeated keys and values) or eager (default: the runtime's own)
    - dropout [switch]: after attention and feed-forward layers, and inside attention (default: as the model's config says)
    - recompute_modules [names]: with recompute selective in megatron: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts (default: core_attn)
    - context_parallel_method [name]: how megatron's ranks share a sequence: p2p, a2a or allgather (default: p2p)
    - expert_capacity_factor [factor]: tokens an expert has room for, over the mean; megatron pads to it and drops the rest (default: no limit)
    - expert_imbalance [factor]: tokens of the fullest expert rank over the mean (megatron, several expert ranks) (default: 1, balanced)
    - straggler_slowdown [factor]: how many times longer a slow node takes for a step (time alone); large jobs on a shared cluster were delayed 1.34 times on average (Wu2024) (default: none is slow)
    - straggler_share [share]: share of nodes that are slow: the more nodes, the likelier one of them is (default: 1, one is in any case)
    - product_share [share]: share of the 16-bit peak that products of large matrices reach on your machine, where you measured it (time alone): power limits differ (default: what published runs on its generation reach)
    - cuda_graph [kind]: megatron: full where graphs replay a whole step, so that kernels do not wait for the host, or modules that they replay, such as attn,moe_router (time alone) (default: none)
    - tp_comm_overlap [switch]: megatron: tensor ranks send while they compute (time alone) (default: off)
    - overlap_moe_expert_parallel_comm [switch]: megatron: expert ranks send while they compute (time alone) (default: off)
    - moe_token_dispatcher_type [name]: megatron: alltoall, or flex (DeepEP, HybridEP), which does not wait for sizes (time alone) (default: alltoall)
    - mtp_layers [layers]: of multi-token prediction that megatron trains (--mtp-num-layers), whatever num_nextn_predict_layers of the config says (default: 0, as Megatron's own is unset)
    - runtime_version [text]: releases that the runtime runs, such as 'core 0.14, TE 2.11', or 0.1 of torchtitan (default: the newest known)
    - loss [kind]: full, chunked, fused, or tiled: that of TRL, the default with objectives dpo, grpo and distillation (default: full)
    - precision [recipe]: such as bf16-mixed, bf16, fp32, fp8-te (default: bf16-mixed)
    - optimizer [name]: such as adamw, adamw-8bit, muon (default: adamw)
    - optimizer_implementation [kind]: of torch: fused, foreach (copies of all parameters in the step) or for-loop (default: fused)
    - objective [name]: what training is for: sft (or pre-training), dpo, grpo, ppo or distillation (default: sft)
    - teacher [model]: the model that distillation learns from
    - engine_memory_share [share]: part of the memory that an engine takes which generates on the same accelerators (grpo, ppo) (default: 0)
    - method [method]: what trains: full, lora, dora, qlora (LoRA on a 4-bit base) or freeze (the last layers) (default: full)
    - lora_rank [rank]: rank of the adapters (default: 16)
    - lora_targets [names]: linear layers with adapters, such as q_proj,v_proj (default: all-linear)
    - lora_dropout [switch]: dropout before the adapters (default: none)
    - base_weights [precision]: a base quantised by bitsandbytes: nf4, nf4-double, fp4, fp4-double or int8 (default: nf4-double with qlora, else 16 bit)
    - upcast_base [switch]: norms, embedding and head of a quantised base in fp32, as peft's prepare_model_for_kbit_training leaves them (transformers, ddp) (default: on)
    - trainable_layers [layers]: layers that train with method freeze, from the last (default: 2)
    - first_stage_layers [layers]: layers of the first pipeline stage (default: as even as can be)
    - last_stage_layers [layers]: layers of the last pipeline stage (default: as even as can be)
    - pipeline_layout [text]: megatron's --pipeline-model-parallel-layout, a stage between bars: E embedding, t layer, m prediction, L loss (default: as even as can be)
    - account_for_embedding_in_pipeline_split [switch]: the embedding counts as a layer of the first stage (megatron) (default: off)
    - account_for_loss_in_pipeline_split [switch]: the loss counts as a layer of the last stage (megatron) (default: off)
    - model_code [name]: whose code the layers are: transformers, torchtitan, megatron, ... (the runtime's own) (default: the runtime's own)
    - offload_optimizer [place]: optimizer states, and gradients that are sharded: none, cpu or nvme (deepspeed, fsdp2, megatron) (default: none)
    - offload_parameters [place]: shards of the weights: none, cpu or nvme (deepspeed with ZeRO 3, fsdp2) (default: none)
    - offload_activations [place]: tensors kept for backward: none, cpu or nvme (default: none)
    - optimizer_offload_fraction [share]: share of the optimizer states that is offloaded (megatron, deepspeed with ZeRO 3) (default: 1)
    - host_update_bandwidth [bytes/s]: bytes a second that the processors of a node read and write while they update (with offload_optimizer, time alone): published runs got 2GB/s to 54GB/s
    - offload_modules [names]: modules of megatron whose inputs are offloaded, such as core_attn,moe_act (default: all that it knows)
    - data_loader_workers [processes]: processes of each rank that load data (default: 0)
    - reduce_bucket_size [elements]: DeepSpeed: elements reduced at a time, or auto as the Trainer fills in (default: 500M)
    - allgather_bucket_size [elements]: DeepSpeed: elements gathered at a time after a step; torch needs no memory for it (default: 500M)
    - overlap_comm [switch]: DeepSpeed: reduce during backward; a second bucket in ZeRO 1 and 2 (default: in ZeRO 3 alone)
    - contiguous_gradients [switch]: DeepSpeed: gradients are copied to a bucket of full size (default: on)
    - sub_group_size [elements]: DeepSpeed, ZeRO 3: parameters of a rank updated at a time (default: 1B)
    - stage3_prefetch_bucket_size [elements]: DeepSpeed, ZeRO 3: elements fetched ahead at a time, or auto (default: 50M)
    - stage3_max_live_parameters [elements]: DeepSpeed, ZeRO 3: parameters gathered at most (default: 1B)
    - stage3_max_reuse_distance [elements]: DeepSpeed, ZeRO 3: parameters used again within so many are not released (default: 1B)
    - stage3_param_persistence_threshold [elements]: DeepSpeed, ZeRO 3: smaller parameters stay whole, or auto (default: 100k)
    - stage3_gather_16bit_weights_on_model_save [switch]: DeepSpeed, ZeRO 3: rank 0 gathers the weights to save them (default: off)
    - zero_hpz_partition_size [ranks]: ZeRO++: ranks that share a second shard of the weights; 1: there is none (default: 1)
    - zero_quantized_weights [switch]: ZeRO++: weights are gathered in 8 bits (default: off)
    - zero_quantized_nontrainable_weights [switch]: ZeRO++: weights that do not train are stored in 8 bits (default: off)
    - zero_quantized_gradients [switch]: ZeRO++: gradients are reduced in 4 bits (default: off)
    - compile [switch]: torch.compile of layers and loss (fsdp2 with torchtitan's code, torchtune) (default: off)
    - float8 [kind]: scales of float8 products (fsdp2): none, tensorwise or rowwise (default: none)
    - float8_all_gather [switch]: gather weights in float8 (with float8 tensorwise) (default: off)
    - async_tensor_parallel [switch]: overlap of products and collectives in symmetric memory (fsdp2, compiled) (default: off)
    - replicate_size [groups]: groups of ranks that shard on their own (HSDP) (default: 1)
    - optimizer_in_backward [switch]: the optimizer steps as gradients come (torchtune) (default: off)
    - expandable_segments [switch]: PyTorch's allocator with expandable segments (fsdp2, transformers, ddp, unsloth) (default: as the runtime has it)
    - liger [switch]: Liger's kernels: norms, positions, feed-forward, loss in parts (transformers, ddp) (default: off)
    - packing [switch]: sequences packed into rows of sequence_length, each for itself (code of transformers, torchtune) (default: off)
    - keep_outputs [switch]: the training loop holds the logits until the next step, as `outputs = model(...)` does in a plain loop; the Trainer does not (transformers, ddp) (default: off)
    - runtime [name]: fsdp2, megatron, transformers, ddp, deepspeed, nanotron, torchtune, unsloth or litgpt (default: fsdp2; transformers on one accelerator)
    """

    sequence_length: int | None = None
    micro_batch_size: int | None = None
    global_batch_size: int | None = None
    num_microbatches: int | None = None
    tensor_parallel_size: int | None = None
    sequence_parallel: bool | None = None
    pipeline_parallel_size: int | None = None
    virtual_pipeline_size: int | None = None
    pipeline_schedule: str | None = None
    context_parallel_size: int | None = None
    expert_parallel_size: int | None = None
    expert_tensor_parallel_size: int | None = None
    data_parallel_size: int | None = None
    zero_stage: int | None = None
    recompute: str | None = None
    attention: str | None = None
    dropout: bool | None = None
    loss: str | None = None
    precision: str | None = None
    optimizer: str | None = None
    optimizer_implementation: str | None = None
    runtime: str | None = None
    replicate_size: int | None = None
    compile: bool | None = None
    float8: str | None = None
    float8_all_gather: bool | None = None
    async_tensor_parallel: bool | None = None
    optimizer_in_backward: bool | None = None
    liger: bool | None = None
    packing: bool | None = None
    keep_outputs: bool | None = None
    expandable_segments: bool | None = None
    model_code: str | None = None
    objective: str | None = None
    teacher: str | None = None
    engine_memory_share: float | None = None
    method: str | None = None
    lora_rank: int | None = None
    lora_targets: str | None = None
    lora_dropout: bool | None = None
    base_weights: str | None = None
    upcast_base: bool | None = None
    trainable_layers: int | None = None
    first_stage_layers: int | None = None
    last_stage_layers: int | None = None
    pipeline_layout: str | None = None
    account_for_embedding_in_pipeline_split: bool | None = None
    account_for_loss_in_pipeline_split: bool | None = None
    recompute_modules: str | None = None
    context_parallel_method: str | None = None
    expert_capacity_factor: float | None = None
    expert_imbalance: float | None = None
    straggler_slowdown: float | None = None
    straggler_share: float | None = None
    product_share: float | None = None
    mtp_layers: int | None = None
    runtime_version: str | None = None
    offload_optimizer: str | None = None
    offload_parameters: str | None = None
    offload_activations: str | None = None
    optimizer_offload_fraction: float | None = None
    host_update_bandwidth: float | str | None = None
    offload_modules: str | None = None
    cuda_graph: str | None = None
    tp_comm_overlap: bool | None = None
    overlap_moe_expert_parallel_comm: bool | None = None
    moe_token_dispatcher_type: str | None = None
    data_loader_workers: int | None = None
    reduce_bucket_size: int | str | None = None
    allgather_bucket_size: int | str | None = None
    overlap_comm: bool | None = None
    contiguous_gradients: bool | None = None
    sub_group_size: int | str | None = None
    stage3_prefetch_bucket_size: int | str | None = None
    stage3_max_live_parameters: int | str | None = None
    stage3_max_reuse_distance: int | str | None = None
    stage3_param_persistence_threshold: int | str | None = None
    stage3_gather_16bit_weights_on_model_save: bool | None = None
    zero_hpz_partition_size: int | str | None = None
    zero_quantized_weights: bool | None = None
    zero_quantized_nontrainable_weights: bool | None = None
    zero_quantized_gradients: bool | None = None
