"""Memory of engines besides vLLM: what SGLang reserves, what llama.cpp allocates, adapters, and what stays on the
host.
"""

from tonnage.kernel.formula import ceil_div, formula, maximum, minimum


@formula(unit="bytes", source="SGLang, sglang/srt/model_executor/model_runner.py: profile_max_num_token")
def dynamic_bytes(U, u):
    """What a static share leaves of the memory that was free before the model was loaded."""
    return U * (1 - u)


@formula(unit="bytes", source="SGLang, sglang/srt/arg_groups/memory_hook.py: handle_gpu_memory_settings")
def activation_reserve_bytes(T):
    """What is reserved for attention's constants and for a chunk of T tokens."""
    return (512 + 1.5 * maximum(T, 2048)) * 2**20


@formula(unit="bytes", source="SGLang, sglang/srt/arg_groups/memory_hook.py: handle_gpu_memory_settings")
def parallel_reserve_bytes(t, p):
    """What is reserved for many ranks: a GiB for each eight."""
    return t * p / 8 * 1024 * 2**20


@formula(unit="bytes", source="SGLang, sglang/srt/arg_groups/memory_hook.py: reserve_for_graph_mb")
def graph_reserve_bytes(n_graph):
    """Memory reserved for the CUDA graphs of decode steps."""
    return 2 * n_graph * 2**20


@formula(unit="bytes", source="SGLang, sglang/srt/arg_groups/memory_hook.py: reserve_for_graph_mb")
def attention_groups_reserve_bytes(n_graph, n_dp):
    """Memory reserved for CUDA graphs with data-parallel attention: more for large batches."""
    return n_graph * n_dp * (3 + 1.5 * minimum(maximum(n_graph - 300, 0), 1)) * 2**20


@formula(unit="bytes", source="SGLang, sglang/srt/arg_groups/memory_hook.py: handle_gpu_memory_settings")
def least_reserve_bytes(U):
    """10 GiB, on accelerators of more than 60."""
    return 10 * 1024 * 2**20 * minimum(maximum(U // 2**20 - 60 * 1024, 0), 1)


@formula(unit="bytes", source="TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/_util.py: _cal_max_memory")
def unshared_bytes(U, u, M):
    """What a share of the free memory leaves of it, where M bytes are taken."""
    return maximum(U - M, 0) * (1 - u)


@formula(unit="bytes", source="vllm-gaudi, vllm_gaudi/v1/worker/hpu_worker.py: determine_available_memory")
def plugin_graphs_bytes(U, u, M, p):
    """What is kept for graphs: a part of the share that the engine takes of the memory where M bytes are taken."""
    return maximum(U - M, 0) * u * p


@formula(unit="bytes", source="SGLang, sglang/srt/arg_groups/memory_hook.py: mem_fraction_static")
def reserve_left_bytes(U, M):
    """What is reserved beyond M bytes that were estimated."""
    return maximum(U - M, 0)


@formula(unit="tokens", source="SGLang, sglang/srt/mem_cache/allocator")
def page_tokens(s, B):
    """A context rounded up to whole pages."""
    return ceil_div(s, B) * B


@formula(
    unit="tokens",
    source="SGLang, sglang/srt/model_executor/pool_configurator.py: HybridSWAPoolConfigurator",
    assumes=(
        "the pool of windows has u tokens for each token of the pool of full attention, and a request takes "
        "min(s, r) + B of it"
    ),
)
def pool_share_tokens(s, r, B, u):
    """Tokens of the pool of full attention that a request keeps others from: its own, or those that its windows
    stand for.
    """
    return maximum(s, (minimum(s, r) + B) / u)


@formula(unit="tokens", source="SGLang, sglang/srt/model_executor/pool_configurator.py: validate_swa_pool_size")
def window_pool_tokens(s, r, B):
    """Tokens that a request takes where all layers have a window."""
    return minimum(s, r) + B


@formula(
    unit="tokens",
    source="SGLang 0.5.23, sglang/srt/model_executor/pool_configurator.py: compute_swa_request_cap, "
    "_resolve_swa_prefix_tails",
    assumes="each running request has a window with the 128 tokens between two evictions, two pages, and windows with "
    "a page each of four prefixes that may be used again",
)
def request_window_tokens(r, B):
    """Tokens of the pool of windows that are set aside for a request of a model with compressed keys."""
    return r + 128 + 2 * B + 4 * (r + B)


@formula(unit="pages", source="SGLang 0.5.23, sglang/srt/model_executor/pool_configurator.py: c4_state_pool_size")
def states_of_pages(T, B):
    """States of a request of which every page of its window has one; T: tokens of its window."""
    return T / B


@formula(unit="tokens", source="SGLang, sglang/srt/model_executor/pool_configurator.py: HybridSWAPoolConfigurator")
def window_token_share(u):
    """Tokens of the pool of windows for each token of the pool of full attention."""
    return u


@formula(unit="bytes", source="SGLang, sglang/srt/mem_cache/kv_cache_configurator.py: _handle_max_mamba_cache")
def split_pool_bytes(M, u):
    """What a request keeps others from, of a memory of which a share u is the pool that it takes M bytes of."""
    return M / u


@formula(unit="slots", source="SGLang, sglang/srt/mem_cache/kv_cache_configurator.py: _calculate_mamba_ratio")
def state_slots(n_slots):
    """Recurrent states that are set aside for each request."""
    return n_slots


@formula(
    unit="tokens", source="llama.cpp, src/llama-context.cpp: n_ctx_seq; gpt-fast, model.py: Transformer.setup_caches"
)
def cells(s, B):
    """Cells of a request: its context in whole multiples of B."""
    return ceil_div(s, B) * B


@formula(unit="tokens", source="llama.cpp, src/llama-kv-cache-iswa.cpp: size_swa")
def window_cells(s, r, T, B):
    """Cells of a request in layers with a window: the window and a batch, in whole multiples of B."""
    return ceil_div(minimum(ceil_div(s, B) * B, r + T), B) * B


@formula(
    unit="bytes",
    source="llama.cpp, src/llama-graph.cpp",
    assumes="numbers have 4 bytes; logits of a whole batch are made from hidden states that are still there",
)
def head_buffer_bytes(V, h, T):
    """The compute buffer at the head."""
    return (V + h) * T * 4


@formula(
    unit="bytes",
    source="llama.cpp, src/llama-graph.cpp: build_attn_mha",
    assumes=(
        "without flash attention: scores of all a heads in fp32, the mask, and queries, keys, values and the "
        "residual of h numbers each"
    ),
)
def scores_buffer_bytes(a, s, h, T):
    """The compute buffer in attention over s cells."""
    return (a * s + s + 4 * h) * T * 4


@formula(
    unit="bytes",
    source="llama.cpp, src/llama-graph.cpp: build_attn_inp_kv",
    assumes="with flash attention: the mask in fp32 and cast to 16 bits, and the residual",
)
def mask_buffer_bytes(s, h, T):
    """The compute buffer when the mask over s cells is cast."""
    return (6 * s + 4 * h) * T


@formula(
    unit="bytes",
    source="llama.cpp, src/llama-graph.cpp: build_ffn, build_moe_ffn",
    assumes="numbers have 4 bytes; the mask of s cells stays in 16 bits",
)
def layer_buffer_bytes(x, s, h, T):
    """The compute buffer in a feed-forward layer of x numbers a token."""
    return ((x + 2 * h) * 4 + 2 * s) * T


@formula(unit="bytes", source="llama.cpp, src/llama-context.cpp: output_reserve")
def output_buffer_bytes(V, h, R):
    """Host memory for the logits and hidden states of R requests."""
    return (V + h) * R * 4


@formula(
    unit="bytes",
    source="llama.cpp, src/llama-graph.cpp: build_attn_inp_kv",
    assumes="inputs of a batch: its mask and its embeddings",
)
def host_input_bytes(s, h, T):
    """The compute buffer in host memory."""
    return (s + h) * T * 4


@formula(unit="bytes", source="vLLM, vllm/config/offload.py: cpu_offload_gb", difference=True)
def host_weights_bytes(M, U):
    """Of M bytes of weights those that stay in host memory; taken off what the accelerator holds."""
    return -minimum(M, U)


@formula(unit="bytes", source="vLLM, vllm/lora/layers", assumes="slots are allocated whole, for the largest rank")
def adapter_bytes(A, rank, x, w):
    """Low-rank pairs of A adapters beside matrices that take and give x numbers."""
    return A * rank * x * w
