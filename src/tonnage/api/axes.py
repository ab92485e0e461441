"""Types of the options of `compare`, each of which takes several values. Written by scripts/option_types.py."""

from collections.abc import Sequence
from typing import TypedDict


class Axes(TypedDict, total=False):
    """Options of `serve`, or with `train` those of `train`."""

    reserve_bytes: float | Sequence[float]
    sequence_length: int | Sequence[int | None] | None
    micro_batch_size: int | Sequence[int | None] | None
    global_batch_size: int | Sequence[int | None] | None
    num_microbatches: int | Sequence[int | None] | None
    tensor_parallel_size: int | Sequence[int | None] | None
    sequence_parallel: bool | Sequence[bool | None] | None
    pipeline_parallel_size: int | Sequence[int | None] | None
    virtual_pipeline_size: int | Sequence[int | None] | None
    pipeline_schedule: str | Sequence[str | None] | None
    context_parallel_size: int | Sequence[int | None] | None
    expert_parallel_size: int | Sequence[int | None] | None
    expert_tensor_parallel_size: int | Sequence[int | None] | None
    data_parallel_size: int | Sequence[int | None] | None
    zero_stage: int | Sequence[int | None] | None
    recompute: str | Sequence[str | None] | None
    attention: str | Sequence[str | None] | None
    dropout: bool | Sequence[bool | None] | None
    recompute_modules: str | Sequence[str | None] | None
    context_parallel_method: str | Sequence[str | None] | None
    expert_capacity_factor: float | Sequence[float | None] | None
    expert_imbalance: float | Sequence[float | None] | None
    straggler_slowdown: float | Sequence[float | None] | None
    straggler_share: float | Sequence[float | None] | None
    product_share: float | Sequence[float | None] | None
    calibrated: bool | Sequence[bool | None] | None
    cuda_graph: str | Sequence[str | None] | None
    tp_comm_overlap: bool | Sequence[bool | None] | None
    overlap_moe_expert_parallel_comm: bool | Sequence[bool | None] | None
    moe_token_dispatcher_type: str | Sequence[str | None] | None
    mtp_layers: int | Sequence[int | None] | None
    runtime_version: str | Sequence[str | None] | None
    loss: str | Sequence[str | None] | None
    precision: str | Sequence[str | None] | None
    optimizer: str | Sequence[str | None] | None
    optimizer_implementation: str | Sequence[str | None] | None
    objective: str | Sequence[str | None] | None
    negatives: int | Sequence[int | None] | None
    cached_embeddings: bool | Sequence[bool | None] | None
    teacher: str | Sequence[str | None] | None
    engine_memory_share: float | Sequence[float | None] | None
    prompts_per_step: int | Sequence[int | None] | None
    num_generations: int | Sequence[int | None] | None
    prompt_length: int | Sequence[int | None] | None
    max_completion_length: int | Sequence[int | None] | None
    mean_completion_length: int | Sequence[int | None] | None
    completion_spread: float | Sequence[float | None] | None
    rollout_engine: str | Sequence[str | None] | None
    rollout_engine_version: str | Sequence[str | None] | None
    rollout_accelerators: int | Sequence[int | None] | None
    rollout_tensor_parallel_size: int | Sequence[int | None] | None
    rollout_max_num_seqs: int | Sequence[int | None] | None
    rollout_memory_share: float | Sequence[float | None] | None
    rollout_offload: bool | Sequence[bool | None] | None
    async_steps: int | Sequence[int | None] | None
    rollout_turns: int | Sequence[int | None] | None
    tool_seconds: float | Sequence[float | None] | None
    ppo_epochs: int | Sequence[int | None] | None
    lmbda: float | Sequence[float | None] | None
    beta: float | Sequence[float | None] | None
    sequence_packing: bool | Sequence[bool | None] | None
    method: str | Sequence[str | None] | None
    lora_rank: int | Sequence[int | None] | None
    lora_targets: str | Sequence[str | None] | None
    lora_dropout: bool | Sequence[bool | None] | None
    base_weights: str | Sequence[str | None] | None
    upcast_base: bool | Sequence[bool | None] | None
    trainable_layers: int | Sequence[int | None] | None
    images: int | Sequence[int | None] | None
    image_size: str | Sequence[str | None] | None
    video_seconds: float | str | Sequence[float | str | None] | None
    video_fps: float | Sequence[float | None] | None
    vision_tower: str | Sequence[str | None] | None
    first_stage_layers: int | Sequence[int | None] | None
    last_stage_layers: int | Sequence[int | None] | None
    pipeline_layout: str | Sequence[str | None] | None
    account_for_embedding_in_pipeline_split: bool | Sequence[bool | None] | None
    account_for_loss_in_pipeline_split: bool | Sequence[bool | None] | None
    model_code: str | Sequence[str | None] | None
    offload_optimizer: str | Sequence[str | None] | None
    offload_parameters: str | Sequence[str | None] | None
    offload_activations: str | Sequence[str | None] | None
    optimizer_offload_fraction: float | Sequence[float | None] | None
    host_update_bandwidth: float | str | Sequence[float | str | None] | None
    inter_node_bandwidth: float | str | Sequence[float | str | None] | None
    intra_node_bandwidth: float | str | Sequence[float | str | None] | None
    offload_modules: str | Sequence[str | None] | None
    data_loader_workers: int | Sequence[int | None] | None
    reduce_bucket_size: int | str | Sequence[int | str | None] | None
    allgather_bucket_size: int | str | Sequence[int | str | None] | None
    overlap_comm: bool | Sequence[bool | None] | None
    contiguous_gradients: bool | Sequence[bool | None] | None
    sub_group_size: int | str | Sequence[int | str | None] | None
    stage3_prefetch_bucket_size: int | str | Sequence[int | str | None] | None
    stage3_max_live_parameters: int | str | Sequence[int | str | None] | None
    stage3_max_reuse_distance: int | str | Sequence[int | str | None] | None
    stage3_param_persistence_threshold: int | str | Sequence[int | str | None] | None
    stage3_gather_16bit_weights_on_model_save: bool | Sequence[bool | None] | None
    zero_hpz_partition_size: int | str | Sequence[int | str | None] | None
    zero_quantized_weights: bool | Sequence[bool | None] | None
    zero_quantized_nontrainable_weights: bool | Sequence[bool | None] | None
    zero_quantized_gradients: bool | Sequence[bool | None] | None
    compile: bool | Sequence[bool | None] | None
    float8: str | Sequence[str | None] | None
    float8_all_gather: bool | Sequence[bool | None] | None
    async_tensor_parallel: bool | Sequence[bool | None] | None
    replicate_size: int | Sequence[int | None] | None
    optimizer_in_backward: bool | Sequence[bool | None] | None
    expandable_segments: bool | Sequence[bool | None] | None
    liger: bool | Sequence[bool | None] | None
    mean_packed_length: float | Sequence[float | None] | None
    packing: bool | Sequence[bool | None] | None
    keep_outputs: bool | Sequence[bool | None] | None
    runtime: str | Sequence[str | None] | None
    tokens: int | str | Sequence[int | str | None] | None
    epochs: float | Sequence[float | None] | None
    dataset_tokens: int | str | Sequence[int | str | None] | None
    max_steps: int | str | Sequence[int | str | None] | None
    deadline: float | str | Sequence[float | str | None] | None
    budget: float | str | Sequence[float | str | None] | None
    budget_accelerator_hours: float | str | Sequence[float | str | None] | None
    price_per_accelerator_hour: float | Sequence[float | None] | None
    checkpoint_seconds: float | str | Sequence[float | str | None] | None
    checkpoint_interval: float | str | Sequence[float | str | None] | None
    storage_bandwidth: float | str | Sequence[float | str | None] | None
    storage_read_bandwidth: float | str | Sequence[float | str | None] | None
    restart_seconds: float | str | Sequence[float | str | None] | None
    accelerator_mtbf: float | str | Sequence[float | str | None] | None
    failures: str | Sequence[str | None] | None
    checkpoint_tier: str | Sequence[str | None] | None
    spares: int | Sequence[int | None] | None
    repair_seconds: float | str | Sequence[float | str | None] | None
    elastic: bool | Sequence[bool | None] | None
    provider: str | Sequence[str | None] | None
    price_kind: str | Sequence[str | None] | None
    region: str | Sequence[str | None] | None
    exchange_rate: str | Sequence[str | None] | None
    grid: float | str | Sequence[float | str | None] | None
    pue: float | Sequence[float | None] | None
    power_share: float | Sequence[float | None] | None
    keep_checkpoints: int | Sequence[int | None] | None
    text_bytes_per_token: float | Sequence[float | None] | None
    electricity_usd_per_kwh: float | Sequence[float | None] | None
    network_share: float | Sequence[float | None] | None
    staff_usd_per_month: float | Sequence[float | None] | None
    used_share: float | Sequence[float | None] | None
    machine_usd: float | Sequence[float | None] | None
    machine_watts: float | Sequence[float | None] | None
    depreciation_years: float | Sequence[float | None] | None
    colocation_usd_per_kw_month: float | Sequence[float | None] | None
    edge: str | Sequence[str | None] | None
    context: int | Sequence[int | None] | None
    concurrency: int | Sequence[int | None] | None
    weights: str | Sequence[str | None] | None
    kv_cache: str | Sequence[str | None] | None
    max_num_batched_tokens: int | Sequence[int | None] | None
    max_num_seqs: int | Sequence[int | None] | None
    gpu_memory_utilization: float | Sequence[float | None] | None
    enforce_eager: bool | Sequence[bool | None] | None
    engine: str | Sequence[str | None] | None
    engine_version: str | Sequence[str | None] | None
    attention_data_parallel_size: int | Sequence[int | None] | None
    redundant_experts: int | Sequence[int | None] | None
    layers_on_accelerator: int | Sequence[int | None] | None
    expert_layers_on_host: int | Sequence[int | None] | None
    gpu_experts: int | Sequence[int | None] | None
    host_method: str | Sequence[str | None] | None
    host_cores: int | Sequence[int | None] | None
    gpu_prefill_tokens: int | Sequence[int | None] | None
    host_memory: int | Sequence[int | None] | None
    weights_on_host: int | Sequence[int | None] | None
    speculative: str | Sequence[str | None] | None
    draft_model: str | Sequence[str | None] | None
    draft_tokens: int | Sequence[int | None] | None
    acceptance: float | Sequence[float | None] | None
    denoising_steps: int | Sequence[int | None] | None
    block_length: int | Sequence[int | None] | None
    denoising_cache: str | Sequence[str | None] | None
    lora_adapters: int | Sequence[int | None] | None
    lora_active: int | Sequence[int | None] | None
    lora_on_host: int | Sequence[int | None] | None
    kv_offload: str | Sequence[str | None] | None
    kv_offload_size: int | Sequence[int | None] | None
    host_bandwidth: float | str | Sequence[float | str | None] | None
    input_tokens: int | Sequence[int | None] | None
    output_tokens: int | Sequence[int | None] | None
    documents: int | Sequence[int | None] | None
    audio_seconds: float | str | Sequence[float | str | None] | None
    request_rate: float | Sequence[float | None] | None
    cached_tokens: int | Sequence[int | None] | None
    cache_hit_rate: float | Sequence[float | None] | None
    prefill_replicas: int | Sequence[int | None] | None
    kv_transfer: str | Sequence[str | None] | None
    spread: float | Sequence[float | None] | None
    burstiness: float | Sequence[float | None] | None
    trace: str | Sequence[str | None] | None
    ttft: float | str | Sequence[float | str | None] | None
    tpot: float | str | Sequence[float | str | None] | None
    percentile: str | Sequence[str | None] | None
    simulate: bool | Sequence[bool | None] | None
    num_requests: int | Sequence[int | None] | None
    seed: int | Sequence[int | None] | None
