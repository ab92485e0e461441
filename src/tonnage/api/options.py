"""Types of the options of the public functions. Written by scripts/option_types.py."""

from typing import TypedDict


class TrainOptions(TypedDict, total=False):
    """Options of `train`."""

    sequence_length: int | None
    seq: int | None
    micro_batch_size: int | None
    mbs: int | None
    global_batch_size: int | None
    gbs: int | None
    num_microbatches: int | None
    tensor_parallel_size: int | None
    tp: int | None
    sequence_parallel: bool | None
    pipeline_parallel_size: int | None
    pp: int | None
    virtual_pipeline_size: int | None
    vpp: int | None
    pipeline_schedule: str | None
    context_parallel_size: int | None
    cp: int | None
    expert_parallel_size: int | None
    ep: int | None
    expert_tensor_parallel_size: int | None
    etp: int | None
    data_parallel_size: int | None
    dp: int | None
    zero_stage: int | None
    zero: int | None
    recompute: str | None
    attention: str | None
    dropout: bool | None
    recompute_modules: str | None
    context_parallel_method: str | None
    expert_capacity_factor: float | None
    expert_imbalance: float | None
    straggler_slowdown: float | None
    straggler_share: float | None
    product_share: float | None
    cuda_graph: str | None
    tp_comm_overlap: bool | None
    overlap_moe_expert_parallel_comm: bool | None
    moe_token_dispatcher_type: str | None
    mtp_layers: int | None
    runtime_version: str | None
    loss: str | None
    precision: str | None
    optimizer: str | None
    optimizer_implementation: str | None
    objective: str | None
    teacher: str | None
    engine_memory_share: float | None
    method: str | None
    lora_rank: int | None
    lora_targets: str | None
    lora_dropout: bool | None
    base_weights: str | None
    upcast_base: bool | None
    trainable_layers: int | None
    first_stage_layers: int | None
    last_stage_layers: int | None
    pipeline_layout: str | None
    account_for_embedding_in_pipeline_split: bool | None
    account_for_loss_in_pipeline_split: bool | None
    model_code: str | None
    offload_optimizer: str | None
    offload_parameters: str | None
    offload_activations: str | None
    optimizer_offload_fraction: float | None
    host_update_bandwidth: float | str | None
    offload_modules: str | None
    data_loader_workers: int | None
    reduce_bucket_size: int | str | None
    allgather_bucket_size: int | str | None
    overlap_comm: bool | None
    contiguous_gradients: bool | None
    sub_group_size: int | str | None
    stage3_prefetch_bucket_size: int | str | None
    stage3_max_live_parameters: int | str | None
    stage3_max_reuse_distance: int | str | None
    stage3_param_persistence_threshold: int | str | None
    stage3_gather_16bit_weights_on_model_save: bool | None
    zero_hpz_partition_size: int | str | None
    zero_quantized_weights: bool | None
    zero_quantized_nontrainable_weights: bool | None
    zero_quantized_gradients: bool | None
    compile: bool | None
    float8: str | None
    float8_all_gather: bool | None
    async_tensor_parallel: bool | None
    replicate_size: int | None
    hsdp: int | None
    optimizer_in_backward: bool | None
    expandable_segments: bool | None
    liger: bool | None
    packing: bool | None
    keep_outputs: bool | None
    runtime: str | None
    tokens: int | str | None
    epochs: float | None
    dataset_tokens: int | str | None
    max_steps: int | str | None
    deadline: float | str | None
    budget: float | str | None
    budget_accelerator_hours: float | str | None
    price_per_accelerator_hour: float | None
    checkpoint_seconds: float | str | None
    checkpoint_interval: float | str | None
    storage_bandwidth: float | str | None
    storage_read_bandwidth: float | str | None
    restart_seconds: float | str | None
    accelerator_mtbf: float | str | None
    provider: str | None
    price_kind: str | None
    region: str | None
    exchange_rate: str | None
    grid: float | str | None
    pue: float | None
    power_share: float | None
    keep_checkpoints: int | None
    text_bytes_per_token: float | None
    electricity_usd_per_kwh: float | None
    network_share: float | None
    staff_usd_per_month: float | None
    used_share: float | None
    machine_usd: float | None
    machine_watts: float | None
    depreciation_years: float | None
    colocation_usd_per_kw_month: float | None
    edge: str | None


class PlanTrainingOptions(TrainOptions, total=False):
    """Options of `plan_training`."""

    goal: str | None
    top: int | None
    max_accelerators: int | None
    pareto: bool | None
    exhaustive: bool | None


class MachineOptions(TypedDict, total=False):
    """Options of `for_my_machine`."""

    context: int | None
    ctx: int | None
    concurrency: int | None
    users: int | None
    max_concurrency: int | None
    weights: str | None
    quantization: str | None
    kv_cache: str | None
    tensor_parallel_size: int | None
    tp: int | None
    pipeline_parallel_size: int | None
    pp: int | None
    expert_parallel_size: int | None
    ep: int | None
    max_num_batched_tokens: int | None
    batched_tokens: int | None
    max_num_seqs: int | None
    gpu_memory_utilization: float | None
    enforce_eager: bool | None
    engine: str | None
    engine_version: str | None
    attention_data_parallel_size: int | None
    dp_attention: int | None
    layers_on_accelerator: int | None
    n_gpu_layers: int | None
    ngl: int | None
    expert_layers_on_host: int | None
    n_cpu_moe: int | None
    weights_on_host: int | None
    draft_model: str | None
    spec_draft_model: str | None
    draft_tokens: int | None
    num_speculative_tokens: int | None
    acceptance: float | None
    lora_adapters: int | None
    max_loras: int | None
    lora_rank: int | None
    max_lora_rank: int | None
    storage_read_bandwidth: float | str | None
    host_bandwidth: float | str | None


class ServeOptions(MachineOptions, total=False):
    """Options of `serve` and `frontier`."""

    input_tokens: int | None
    input: int | None
    input_len: int | None
    output_tokens: int | None
    output: int | None
    output_len: int | None
    request_rate: float | None
    rate: float | None
    cached_tokens: int | None
    cached: int | None
    prefill_replicas: int | None
    spread: float | None
    burstiness: float | None
    trace: str | None
    ttft: float | str | None
    tpot: float | str | None
    percentile: str | None
    simulate: bool | None
    num_requests: int | None
    num_prompts: int | None
    seed: int | None
    price_per_accelerator_hour: float | None
    provider: str | None
    price_kind: str | None
    region: str | None
    exchange_rate: str | None
    grid: float | str | None
    pue: float | None
    power_share: float | None
    electricity_usd_per_kwh: float | None
    network_share: float | None
    staff_usd_per_month: float | None
    used_share: float | None
    machine_usd: float | None
    machine_watts: float | None
    depreciation_years: float | None
    colocation_usd_per_kw_month: float | None


class PlanServingOptions(ServeOptions, total=False):
    """Options of `plan_serving`."""

    goal: str | None
    vary: str | None
    max_accelerators: int | None
    max_gpus: int | None
    budget: float | str | None
    top: int | None
    pareto: bool | None


class AnyOptions(TrainOptions, total=False):
    """Options of `max` and `place`: those of `train` or of `serve`."""

    context: int | None
    ctx: int | None
    concurrency: int | None
    users: int | None
    max_concurrency: int | None
    weights: str | None
    quantization: str | None
    kv_cache: str | None
    max_num_batched_tokens: int | None
    batched_tokens: int | None
    max_num_seqs: int | None
    gpu_memory_utilization: float | None
    enforce_eager: bool | None
    engine: str | None
    engine_version: str | None
    attention_data_parallel_size: int | None
    dp_attention: int | None
    layers_on_accelerator: int | None
    n_gpu_layers: int | None
    ngl: int | None
    expert_layers_on_host: int | None
    n_cpu_moe: int | None
    weights_on_host: int | None
    draft_model: str | None
    spec_draft_model: str | None
    draft_tokens: int | None
    num_speculative_tokens: int | None
    acceptance: float | None
    lora_adapters: int | None
    max_loras: int | None
    max_lora_rank: int | None
    host_bandwidth: float | str | None
    input_tokens: int | None
    input: int | None
    input_len: int | None
    output_tokens: int | None
    output: int | None
    output_len: int | None
    request_rate: float | None
    rate: float | None
    cached_tokens: int | None
    cached: int | None
    prefill_replicas: int | None
    spread: float | None
    burstiness: float | None
    trace: str | None
    ttft: float | str | None
    tpot: float | str | None
    percentile: str | None
    simulate: bool | None
    num_requests: int | None
    num_prompts: int | None
    seed: int | None
