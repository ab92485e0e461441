"""A server of TensorRT-LLM: what its options, and the keys of its files, mean. Keys are as the files have them."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.engines.engine_options import (
    KERNELS,
    NO_OPTION,
    Options,
    count,
    names,
    needs,
    one_of,
    put_count,
    put_dtype,
    put_overrides,
)
from tonnage.interchange.parts.engines.servers import Program, Size
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput

SHORT = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "cp_size": "context_parallel_size",
    "ep_size": "moe_expert_parallel_size",
    "cluster_size": "moe_cluster_parallel_size",
    "kv_cache_free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "extra_llm_api_options": "config",
    "pytorch_backend_config": "pytorch_backend",
    "expert_parallel_size": "moe_expert_parallel_size",
    "extra_engine_args": "config",
    "pytorch_weights_path": "model",
}
PROGRAM = Program(
    starts=(("trtllm-serve",), ("-m", "tensorrt_llm.commands.serve")),
    switches=names("trust-remote-code fail-fast-on-attention-window-too-large enable-chunked-prefill"),
    variables=("TRTLLM_", "TLLM_"),
)
IGNORED = names("""
    allow_partial_loading api_key batch_wait_max_tokens_ratio batch_wait_timeout_iters batch_wait_timeout_ms
    batched_logits_processor chat_template checkpoint_format checkpoint_loader config custom_module_dirs
    custom_tokenizer disagg_cluster disagg_cluster_uri enable_iter_perf_stats enable_iter_req_stats
    fail_fast_on_attention_window_too_large garbage_collection_gen0_threshold gpus_per_node grpc guided_decoding_backend
    host hostname iter_stats_max_iterations load_format log_level max_input_len max_stats_len media_io_kwargs
    metadata_server_config_file mm_encoder_only model_name num_postprocess_workers nvfp4_gemm_config
    orchestrator_type otlp_traces_endpoint perf_metrics_max_requests port postprocess_tokenizer_dir print_iter_log
    ray_worker_extension_cls reasoning_parser request_stats_max_iterations return_perf_metrics revision server_role
    skip_tokenizer_init tokenizer tokenizer_mode tokenizer_revision tool_parser trust_remote_code
    urls num_instances router conditional_disagg_config schedule_style env_overrides stream_interval
    enable_chunked_prefill backend_type mpi_session kv_cache_config.enable_block_reuse
    kv_cache_config.enable_partial_reuse kv_cache_config.copy_on_partial_reuse kv_cache_config.event_buffer_max_size
    kv_cache_config.attention_dp_events_gather_period_ms kv_cache_config.secondary_offload_min_priority
    kv_cache_config.onboard_blocks cache_transceiver_config cuda_graph_config.enable_padding
    lora_config.lora_dir lora_config.lora_ckpt_source lora_config.max_cpu_loras lora_config.lora_target_modules
    lora_config.trtllm_modules_to_hf_modules enable_lora speculative_config.eagle3_one_model
    speculative_config.load_format attention_dp_config.batching_wait_iters attention_dp_config.timeout_iters
    attention_dp_config.enable_balance sampler_type gather_generation_logits max_concurrency
    sampler_force_async_worker
""")
HARMLESS = {
    "backend": (("pytorch",), "the rules are those of the PyTorch backend"),
    "context_parallel_size": (("1",), NO_OPTION),
    "moe_cluster_parallel_size": (("1", "-1"), NO_OPTION),
    "max_beam_width": (("1",), NO_OPTION),
    "kv_cache_config.max_gpu_total_bytes": (("0",), "the cache gets its share of what is free here"),
    "kv_cache_config.host_cache_size": (("0",), "a cache in host memory is not estimated"),
    "kv_cache_config.tokens_per_block": (("32",), "blocks have 32 tokens here"),
    "kv_cache_config.mamba_ssm_cache_dtype": (("auto",), "states have the model's own type here"),
    "kv_cache_config.max_util_for_resume": (("0.95",), NO_OPTION),
    "moe_config.backend": (("auto", "cutlass", "trtllm"), KERNELS),
    "attn_backend": (("trtllm",), KERNELS),
    "enable_autotuner": (("true",), KERNELS),
    "allreduce_strategy": (("auto",), KERNELS),
    "disable_overlap_scheduler": (("false",), "passes and their preparation overlap here"),
    "scheduler_config.capacity_scheduler_policy": (
        ("guaranteed_no_evict",),
        "a request is let in when all of it fits here",
    ),
    "attention_dp_config.enable_lm_head_tp_in_adp": (("false",), NO_OPTION),
    "torch_compile_config": ((), "it changes what is compiled"),
    "speculative_config.use_relaxed_acceptance_for_thinking": (("false",), NO_OPTION),
}
UNSURE = {
    **dict.fromkeys(
        ("kv_cache_config.max_tokens", "kv_cache_config.max_attention_window", "kv_cache_config.sink_token_length"),
        "the cache gets its share of what is free here, and layers keep their own windows",
    ),
    "kv_cache_config": NO_OPTION,
    "moe_config": NO_OPTION,
    "pp_partition": "layers are split evenly here",
    "quant_config": "the checkpoint says how it is quantised",
    "calib_config": NO_OPTION,
    "peft_cache_config": NO_OPTION,
    "sparse_attention_config": NO_OPTION,
    "cp_config": NO_OPTION,
    "moe_load_balancer": "experts that are kept twice are not counted",
    "enable_lm_head_tp_in_adp": NO_OPTION,
    "enable_min_latency": KERNELS,
    "enable_layerwise_nvtx_marker": NO_OPTION,
    "force_dynamic_quantization": NO_OPTION,
    "scheduler_config": NO_OPTION,
    "build_config": "the rules are those of the PyTorch backend",
    "extended_runtime_perf_knob_config": "the rules are those of the PyTorch backend",
    "batching_type": "the rules are those of the PyTorch backend",
    "use_cuda_graph": NO_OPTION,
    "mm_encoder_config": "images and sounds are not estimated yet",
    "attention_dp_config": NO_OPTION,
    "layer_wise_benchmarks_config": NO_OPTION,
    "decoding_config": "its newer name is speculative_config",
    "enable_sleep": "its allocator is not estimated",
    "kv_connector_config": "a cache in another place is not estimated",
    "ray_placement_config": "where its workers are placed is not read",
    "use_cute_dsl_blockscaling_mm": KERNELS,
    "use_cute_dsl_blockscaling_bmm": KERNELS,
    "disable_flashinfer_sampling": KERNELS,
}
TABLE = Options(
    tool="TensorRT-LLM",
    joined="_",
    counts={
        "pipeline_parallel_size": "pipeline_parallel_size",
        "max_num_tokens": "max_num_batched_tokens",
        "max_seq_len": "context",
    },
    shares={"kv_cache_config.free_gpu_memory_fraction": "gpu_memory_utilization"},
    ignored=IGNORED,
    harmless=HARMLESS,
    unsure=UNSURE,
)
COMPUTED = names("""
    model tensor_parallel_size moe_expert_parallel_size moe_tensor_parallel_size enable_attention_dp dtype
    kv_cache_config.dtype cuda_graph_config cuda_graph_config.max_batch_size cuda_graph_config.batch_sizes
    speculative_config.decoding_type speculative_config.max_draft_len speculative_config.num_nextn_predict_layers
    speculative_config.speculative_model speculative_config.speculative_model_dir lora_config.max_lora_rank
    lora_config.max_loras model_kwargs context_servers generation_servers
""")
FILE_SIGNS = (
    "kv_cache_config cuda_graph_config moe_config enable_attention_dp cache_transceiver_config max_num_tokens "
    "max_seq_len moe_expert_parallel_size disable_overlap_scheduler print_iter_log attention_dp_config "
    "context_servers generation_servers pytorch_backend_config"
)


def file_values(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a file of settings."""
    return {key: value for key, value in flattened(tree).items() if key}


def values_of(words: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """The options of a command and the keys of the file that it names, which are stronger than the command's.

    tensorrt_llm/commands/serve.py: update_llm_args_with_extra_dict
    """
    arguments = dict(words)
    alone = arguments.pop("alone", [])
    options = {key.replace("-", "_"): value for key, value in arguments.items()}
    for name in ("config", "extra_llm_api_options", "extra_engine_args"):
        if isinstance(options.get(name), str):
            inner = file_values(source.sibling(options[name]).tree)
            named = {SHORT.get(key, key) for key in inner}
            options = {key: value for key, value in options.items() if SHORT.get(key, key) not in named} | inner
            options.setdefault(name, arguments.get(name.replace("_", "-")))
    if alone[:1] == ["serve"]:
        alone = alone[1:]
    if alone:
        options["model"] = alone[0]
        options |= {f"word {number}": word for number, word in enumerate(alone[1:], 2)}
    return options


def read(r: Reading, more: Options | None = None) -> Size:
    """Say of every key what it means. `more`: those of another program that starts TensorRT-LLM."""
    r.rename(SHORT)
    r.put("engine", "tensorrt-llm")
    if r.has("model"):
        r.put("model", r.text("model"), "model")
    ranks = count(r, "tensor_parallel_size")
    keys = [key for key in ("tensor_parallel_size", "pipeline_parallel_size") if r.has(key)]
    _ranks(r, ranks)
    put_dtype(r)
    _cache(r)
    _graphs(r)
    _drafts(r)
    _adapters(r)
    put_overrides(r, "model_kwargs")
    for key in (*r.under("TRTLLM_"), *r.under("TLLM_")):
        if "LOG" in key:
            r.ignore([key])
        r.needs_default(key, "", "0", why="a variable that may change kernels or buffers")
    if more is not None:
        more.read(r)
    TABLE.read(r)
    r.assume("tensor_parallel_size", 1, "tensor_parallel_size" if "tensor_parallel_size" not in r.question else "")
    r.assume("kv_cache_config.free_gpu_memory_fraction", 0.9)
    return Size(accelerators=ranks * count(r, "pipeline_parallel_size"), keys=tuple(keys))


def _ranks(r: Reading, ranks: int) -> None:
    key = "enable_attention_dp"
    tensor = ["tensor_parallel_size"] if r.has("tensor_parallel_size") else []
    if r.has(key) and r.flag(key) and ranks > 1:
        r.put("attention_data_parallel_size", ranks, key, *tensor)
        r.put("tensor_parallel_size", 1, *tensor, key)
    elif tensor:
        r.put("tensor_parallel_size", ranks, *tensor)
    r.ignore([key])
    expert, shared = "moe_expert_parallel_size", "moe_tensor_parallel_size"
    experts = put_count(r, expert, "expert_parallel_size")
    if r.has(shared):
        parts = count(r, shared)
        if ranks % parts or (experts and experts * parts != ranks):
            raise InvalidInput(
                "{file}: {shared} x {expert} must be the {ranks} ranks of tensor_parallel_size. Got "
                "{parts} x {experts}.",
                file=r.source.name,
                shared=shared,
                expert=expert,
                ranks=ranks,
                parts=parts,
                experts=experts or 1,
            )
        if not experts and parts < ranks:
            r.put("expert_parallel_size", ranks // parts, shared, *tensor)
        r.ignore([shared])


def _cache(r: Reading) -> None:
    key = "kv_cache_config.dtype"
    if r.has(key):
        kinds = {"auto": None, "fp8": "fp8", "nvfp4": "nvfp4", "float16": None, "bfloat16": None, "int8": ""}
        kind = one_of(r, key, kinds, "a type of cache that is not described")
        if kind:
            r.put("kv_cache", kind, key)
        r.ignore([key], why="as wide as the activations")


def _graphs(r: Reading) -> None:
    section = "cuda_graph_config"
    if section in r.values and r.get(section) is None:
        r.put("enforce_eager", True, section)
        return
    key, sizes = f"{section}.max_batch_size", f"{section}.batch_sizes"
    largest = count(r, key, 0, 0)
    if isinstance(r.get(sizes), list):
        numbers = [entry for entry in r.get(sizes) if isinstance(entry, int)]
        largest = max([largest, *numbers])
    needed = count(r, "max_batch_size", largest)
    for entry in (key, sizes):
        if entry in r.values and largest >= needed:
            r.ignore([entry], why="graphs are in what the cache leaves free")
        elif entry in r.values:
            r.unsure(entry, "passes of more requests run without graphs")
    r.ignore([section])


def _drafts(r: Reading) -> None:
    section = "speculative_config"
    if not r.under(f"{section}."):
        if section in r.values:
            needs(r, section, (), NO_OPTION)
        return
    kind, tokens = f"{section}.decoding_type", f"{section}.max_draft_len"
    layers = f"{section}.num_nextn_predict_layers"
    name = r.text(kind).lower().replace("_", "").replace("-", "")
    models = [key for key in (f"{section}.speculative_model", f"{section}.speculative_model_dir") if r.has(key)]
    if name == "mtp":
        number = layers if r.has(layers) else tokens
        put_count(r, number, "draft_tokens")
        r.assume(number, 1, "draft_tokens")
        r.ignore([kind, tokens, *models], why="the model's own layers draft")
    elif name in ("eagle", "eagle3", "drafttarget") and models:
        r.put("draft_model", r.text(models[0]), models[0], kind)
        if name != "drafttarget":
            r.put("speculative", "eagle3", kind)
        put_count(r, tokens, "draft_tokens")
    elif name == "ngram":
        put_count(r, tokens, "draft_tokens")
        r.put("speculative", "ngram", kind)
        r.ignore([kind], why="n-grams need no memory")
    else:
        r.unsure(kind, "a way to draft that is not estimated")
    ngram = ("max_matching_ngram_size", "is_keep_all", "is_use_oldest", "is_public_pool")
    r.ignore(f"{section}.{field}" for field in ngram)
    for key in r.under(f"{section}."):
        if key not in IGNORED and key not in HARMLESS:
            needs(r, key, (), NO_OPTION)


def _adapters(r: Reading) -> None:
    section = "lora_config"
    keys = r.under(f"{section}.")
    if keys:
        loras, rank = f"{section}.max_loras", f"{section}.max_lora_rank"
        r.put("lora_adapters", count(r, loras, 4), *([loras] if r.has(loras) else keys[:1]))
        r.put("lora_rank", count(r, rank, 64), *([rank] if r.has(rank) else keys[:1]))
        r.assume(loras, 4)
        r.assume(rank, 64)
    r.ignore([section])
