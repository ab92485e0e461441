"""Time of one forward pass of a served model: reads, arithmetic, experts that are touched."""

from tonnage.kernel.formula import formula, maximum, minimum


@formula(
    unit="seconds",
    source=(
        "aiconfigurator-core, gemm_perf: products of 1 to 4 096 rows lie between the larger of the two and their sum"
    ),
    assumes="the square root of the sum of squares",
)
def product_seconds(tau_read, tau_math):
    """Time of products that read their weights and multiply at the same time."""
    return (tau_read**2 + tau_math**2) ** 0.5


@formula(
    unit="FLOP/s",
    source="llama.cpp, ggml/src/ggml-cuda/mmq.cuh: vec_dot_q8_0_q8_1_mma and its like",
    assumes="tensor cores and lanes take turns",
)
def scaled_integers(P_int, P_lanes, n_scale):
    """Rate of products in integers of which the ordinary lanes scale each sum of 32, in n_scale operations."""
    return 1 / (1 / P_int + n_scale / (32 * P_lanes))


@formula(
    unit="bytes",
    source="llama.cpp b2900, ggml-cuda.cu: ggml_cuda_op_mul_mat_cublas: to_fp16_cuda before cublasGemmEx",
)
def expanded_bytes(n_weights):
    """Bytes of n_weights weights in 16 bits, which are written once and read once."""
    return 2 * n_weights


@formula(
    unit="bytes",
    source=(
        "llama.cpp b2900, llm_build_kqv and ggml_cuda_mul_mat_batched_cublas: scores are written in fp32, read and "
        "written by the softmax, read, written as fp16 and read for the values"
    ),
)
def score_bytes(n_pairs):
    """Bytes that n_pairs scores of attention move where no kernel keeps them on the chip."""
    return (4 + 4 + 4 + 4 + 2 + 2) * n_pairs


@formula(
    unit="experts",
    source="DeepSeek2024V3, sec. 2.1.2: a router chooses for each token",
    assumes="tokens choose experts independently and evenly",
)
def experts_touched(E, k_top, T):
    """Experts of E of which at least one of T tokens, with k_top choices each, chooses one."""
    return E * (1 - maximum(1 - k_top / E, 0) ** T)


@formula(unit="keys", source="Beltagy2020, sec. 3.1", assumes="all requests have the mean context")
def keys_in_reach(R, K, r):
    """Keys that R requests with K tokens of context in all see through a window of r."""
    return minimum(K, R * r)


@formula(
    unit="keys",
    source="Beltagy2020, sec. 3.1",
    assumes="prompts begin where they begin: the mean token sees half as many keys as the last",
)
def prompt_keys_in_reach(T, K, r):
    """Keys that T tokens of prompts see through a window of r, if they saw K without it."""
    return minimum(2 * K, T * r) - minimum(2 * K, T * r) ** 2 / (4 * maximum(K, 1))


@formula(
    unit="bytes",
    source="vLLM, model_executor/layers/fused_moe/fused_moe.py: fused_moe_kernel: each tile loads its rows and weights",
    assumes="what is loaded into tiles comes at a multiple of the memory's bandwidth, which is in n_reuse",
)
def grouped_tile_bytes(C, w, n_reuse):
    """Operands of w bytes that tiles of a grouped product load, if each serves n_reuse FLOP."""
    return C * w / n_reuse


@formula(
    unit="seconds",
    source="llama.cpp, ggml/src/ggml-cuda/mmq.cuh: load_tiles_q4_0 and its like, tiles of up to 128 columns",
    assumes="each tile unpacks its weights again, in n_unpack operations of a lane each",
)
def unpack_seconds(n_weights, n_unpack, T, P_lanes):
    """Time in which lanes unpack n_weights weights for products of T rows."""
    return n_weights * maximum(T / 128, 1) * n_unpack / (P_lanes / 2)


@formula(
    unit="rows",
    source="llama.cpp, ggml/src/ggml-cuda/mmq.cu and mmq.cuh: ncols_opt, tiles of up to 128 columns",
    assumes="experts have the mean number of rows",
)
def tiled_rows(T):
    """Rows of an expert with T rows, filled up to tiles of twice the mean or 128."""
    return maximum(minimum(2 * T, T + 64), 8)


@formula(
    unit="bytes/s",
    source="llama.cpp, issue 25859: what is not pinned is first copied into a pinned buffer, and then uploaded",
)
def unpinned_bandwidth(W_host, W):
    """Bytes a second of weights in ordinary host memory that go to an accelerator over a link of W."""
    return 1 / (1 / W_host + 1 / W)


@formula(
    unit="seconds",
    source="SGLang, sglang/srt/managers/scheduler.py: scheduler_recv_interval",
    assumes="requests come at any moment",
)
def poll_seconds(n_pass, tau):
    """Wait of a request for an engine that looks at what has come every n_pass passes of tau."""
    return (n_pass - 1) / 2 * tau


@formula(
    unit="seconds",
    source=(
        "SGLang, sglang/srt/managers/scheduler.py: event_loop_overlap; vLLM 0.14, release notes: async scheduling "
        "is enabled by default"
    ),
)
def scheduled_seconds(n_pass, share_w, tau):
    """Wait for n_pass passes of tau that were scheduled before a request came; the share share_w of them waits."""
    return n_pass * share_w * tau


@formula(
    unit="tokens",
    source="Leviathan2022, eq. 1",
    assumes="each guess is taken with the same probability, whatever came before",
)
def tokens_per_pass(n_draft, p_take):
    """Tokens that a pass gives which checks n_draft guesses: those that are taken up to the first that is not, and
    one of its own.
    """
    return (1 - minimum(p_take, 0.999999) ** (n_draft + 1)) / (1 - minimum(p_take, 0.999999))


@formula(
    unit="tokens",
    source="vLLM, vllm/v1/spec_decode/metrics.py: mean acceptance length, 1 + accepted tokens over drafts",
)
def tokens_by_positions(sum_take):
    """Tokens that a pass gives where each drafted token is accepted in a share of the passes; sum_take: of these."""
    return 1 + sum_take


@formula(
    unit="tokens",
    source=(
        "SpecForge, issue 339 (Qwen3-30B-A3B: 2.20 and 1.86, 2.27 and 1.86): tokens of a pass that checks a tree, and "
        "of one that checks a chain"
    ),
    assumes="a chain is accepted for the same share of what a tree is",
)
def tokens_of_chain(L_tree, share_chain):
    """Tokens that a pass gives which checks a chain, from those of one that checks a tree of candidates."""
    return 1 + share_chain * (L_tree - 1)


@formula(unit="tokens", source="Nie2025, sec. 2.4: each step unmasks answer length / steps tokens")
def tokens_per_denoising_pass(O, n_pass):
    """Tokens of an answer for each pass of all that denoise it and fill its cache."""
    return O / n_pass
