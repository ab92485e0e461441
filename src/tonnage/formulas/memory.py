"""Bytes, and the numbers that one rank holds."""

from tonnage.kernel.formula import ceil_div, formula, maximum, minimum

# ---- the share of one rank ----


@formula(unit="parameters", source="Shoeybi2019, sec. 3; Rajbhandari2020, sec. 5")
def whole_parameters(N, z):
    """Parameters that tensor parallelism copies to every rank (norms, routers, biases of row-parallel layers)."""
    return N / z


@formula(unit="parameters", source="Shoeybi2019, sec. 3")
def split_parameters(N, t, z):
    """Parameters that tensor parallelism cuts, by rows or by columns."""
    return N / (t * z)


@formula(
    unit="parameters",
    source="Shoeybi2019, sec. 3; vLLM, vllm/model_executor/layers/linear.py: QKVParallelLinear",
    assumes="a rank holds at least one key/value head",
)
def kv_parameters(N, t, k, z):
    """Key and value projections: with more ranks than heads, heads are copied."""
    return N / (minimum(t, k) * z)


@formula(
    unit="parameters",
    source="Shoeybi2019, sec. 3 and 5.1",
    assumes="rows padded to a multiple of the ranks, and of what the runtime asks of each",
)
def vocabulary_parameters(V, h, t, z, mu):
    """A token table or a head, cut over the vocabulary."""
    return ceil_div(V, t * mu) * mu * h / z


@formula(unit="parameters", source="Lepikhin2020, sec. 3", assumes="every expert rank holds the same number of experts")
def expert_parameters(N, e, q, z):
    """Routed experts, spread over expert-parallel ranks and cut inside by expert-tensor-parallel ranks."""
    return N / (e * q * z)


@formula(unit="layers", source="Narayanan2021, sec. 2.2")
def layers_on_rank(l):
    """Layers of one kind on a pipeline stage."""
    return l


@formula(unit="bytes per parameter", source="Rajbhandari2020, sec. 3.1")
def bytes_per_parameter(w):
    """Bytes that one copy or one state keeps for each parameter."""
    return w


@formula(unit="bytes", source="Rajbhandari2020, sec. 3.1")
def state_bytes(N, w):
    """N numbers of w bytes: weights, gradients, or one state of the optimizer."""
    return N * w


@formula(unit="bytes per parameter", source="Rajbhandari2020, sec. 3.1")
def mean_bytes_per_parameter(M, N):
    """What N parameters take on average, when not every tensor takes the same."""
    return M / N


@formula(
    unit="",
    source="PyTorch, torch/_tensor.py: backward accumulates gradients in the leaves",
    assumes="gradients of earlier micro-batches wait for the last one",
)
def gradients_carried(m):
    """1 when gradients of earlier micro-batches are held while another one runs, 0 with a single micro-batch."""
    return minimum(m - 1, 1)


@formula(unit="", source="PyTorch, torch/_tensor.py: backward accumulates gradients in the leaves")
def gradients_fresh(m):
    """1 when no gradients of earlier micro-batches are held, 0 with several micro-batches."""
    return 1 - minimum(m - 1, 1)


@formula(
    unit="micro-batches",
    source="Narayanan2021, sec. 2.2.1; Megatron-LM, megatron/core/pipeline_parallel/schedules.py",
    assumes="1F1B schedule",
)
def microbatches_after_the_first(x, m):
    """Of x micro-batches in flight, those that still are when the backward of the first one of m is over."""
    return minimum(x, maximum(m - 1, 1))


@formula(unit="micro-batches", source="Narayanan2021, sec. 2.2.1")
def microbatches_waiting(x):
    """Of x micro-batches' worth in flight those beside the one whose backward runs."""
    return maximum(x - 1, 0)


@formula(
    unit="parameters",
    source="DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py, setup_buckets; DeepSpeed, "
    "deepspeed/runtime/zero/stage3.py: "
    "torch.empty(reduce_bucket_size)",
    assumes="contiguous_gradients",
)
def whole_bucket_parameters(x):
    """Elements of a flat bucket that is allocated at its full size, however little it carries."""
    return x


@formula(
    unit="parameters",
    source="DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py, allreduce_bucket; DeepSpeed, "
    "deepspeed/runtime/comm/coalesced_collectives.py, reduce_scatter_coalesced",
    assumes="a copy is never larger than what it carries",
)
def bucket_parameters(N, x):
    """Elements of a flat communication bucket of at most x."""
    return minimum(N, x)


@formula(
    unit="parameters",
    source="DeepSpeed, deepspeed/runtime/zero/partitioned_param_coordinator.py: _fetch_sub_module_impl",
    assumes="every module fetches ahead, so that as many parameters are there as may live",
)
def parameters_ahead(N, Nu, xi):
    """Parameters that ZeRO-3 has gathered ahead of the module at work, which needs Nu of them: at most xi live."""
    return maximum(minimum(N, xi) - Nu, 0)


@formula(
    unit="parameters", source="DeepSpeed, deepspeed/runtime/zero/stage3.py: _create_param_groups_fp16_flat_cpu_memory"
)
def parameters_beyond(N, xi):
    """Of N parameters those beyond the first xi."""
    return maximum(N - xi, 0)


@formula(unit="", source="DeepSpeed, deepspeed/runtime/zero/partition_parameters.py: _no_gather_coalesced")
def several_ranks(n):
    """1 where there is more than one rank, 0 with one alone."""
    return minimum(n - 1, 1)


@formula(
    unit="",
    source=(
        "DeepSpeed, deepspeed/runtime/zero/offload_config.py; Megatron-LM, "
        "megatron/core/optimizer/optimizer_config.py: optimizer_offload_fraction"
    ),
)
def share_that_stays(phi):
    """Share of a state on the accelerator when phi of it lives in host memory."""
    return 1 - phi


@formula(
    unit="",
    source=(
        "DeepSpeed, deepspeed/runtime/zero/offload_config.py; Megatron-LM, "
        "megatron/core/optimizer/optimizer_config.py: optimizer_offload_fraction"
    ),
)
def share_that_leaves(phi):
    """Share of a state that lives in host memory."""
    return phi


# ---- activations ----


@formula(
    unit="bytes",
    source="Korthikanti2022, sec. 4.1; Megatron-LM, megatron/core/model_parallel_config.py: context_parallel_size",
)
def saved_bytes(x, w, s, b, c):
    """A tensor kept for backward on every tensor-parallel rank: x numbers a token."""
    return x * w * s * b / c


@formula(
    unit="bytes",
    source=(
        "Korthikanti2022, sec. 4.2.1 and 4.2.2; Megatron-LM, megatron/core/model_parallel_config.py: "
        "context_parallel_size"
    ),
)
def saved_split_bytes(x, w, s, b, c, t):
    """A tensor kept for backward, cut over tensor-parallel ranks (by features, or by tokens: sequence parallelism)."""
    return x * w * s * b / (c * t)


@formula(
    unit="bytes", source="Megatron-LM, megatron/core/transformer/moe/token_dispatcher.py: MoEAlltoAllTokenDispatcher"
)
def row_bytes(x, w, Rx, q):
    """Rx copies of tokens that arrive at a rank's experts: x numbers each, cut over the ranks inside an expert."""
    return x * w * Rx / q


@formula(unit="bytes", source="TRL, trl/kernels/chunked_logprob.py: TOKEN_CHUNK_SIZE")
def tile_bytes(x, w, s, b, c, xi):
    """A buffer for the tokens of a rank, of which at most xi are at work at once: x numbers each."""
    return x * w * minimum(s * b / c, xi)


@formula(unit="bytes", source="Shoeybi2019, sec. 3")
def split_state_bytes(N, w, t):
    """N numbers of w bytes, cut over t ranks."""
    return N * w / t


@formula(
    unit="bytes",
    source=(
        "Korthikanti2022, sec. 4.1 and 4.2.1; Megatron-LM, megatron/core/model_parallel_config.py: "
        "context_parallel_size"
    ),
)
def saved_scores_bytes(x, w, s, b, c, t):
    """Attention scores kept for backward: x numbers for each pair of a token and a key."""
    return x * w * s * s * b / (c * t)


@formula(
    unit="micro-batches",
    source="Narayanan2021, sec. 2.2.1; Megatron-LM, megatron/core/pipeline_parallel/schedules.py",
    assumes="1F1B schedule",
)
def microbatches_in_flight(p, i, m):
    """Micro-batches that stage i has run forward and not yet backward, at most."""
    return minimum(p - i, m)


@formula(
    unit="micro-batches",
    source="Narayanan2021, sec. 2.2.2; Megatron-LM, megatron/core/pipeline_parallel/schedules.py",
    assumes=(
        "interleaved 1F1B; n_turn: micro-batches that pass one chunk before the next chunk, p where m is a "
        "multiple of p"
    ),
)
def interleaved_microbatches_in_flight(p, i, m, v, n_turn):
    """Micro-batches' worth of a rank's layers in flight, counted in chunks of 1/v of its layers."""
    return minimum(m * v, 2 * (p - 1 - i) + (v - 1) * n_turn + 1) / v


@formula(unit="parameters", source="TransformerEngine, low precision training: linear layers alone are quantised")
def parameters_left(N, U):
    """Of N parameters those that are not among the U of linear layers."""
    return maximum(N - U, 0)


@formula(
    unit="bytes",
    source="Megatron-LM, megatron/core/pipeline_parallel/fine_grained_activation_offload.py",
    assumes="no more is offloaded than is kept",
)
def bytes_that_stay(M, U):
    """Of M bytes that a layer keeps those that are not among the U that are offloaded."""
    return maximum(M - U, 0)


@formula(
    unit="bytes",
    source="Megatron-LM, megatron/core/pipeline_parallel/fine_grained_activation_offload.py",
    assumes="no more is offloaded than is kept",
)
def bytes_that_leave(M, U):
    """Of M bytes that a layer keeps those among the U that are offloaded."""
    return minimum(M, U)


# ---- serving ----


@formula(
    unit="bytes",
    source=(
        "Pope2023, sec. 2.1; DeepSeek2024V2, sec. 2.1.3 and table 1; vLLM, vllm/model_executor/layers/linear.py: "
        "QKVParallelLinear"
    ),
    assumes="a rank holds at least one key/value head",
)
def token_cache_bytes(x, w, s, r, j, t, k):
    """What a layer keeps of one request: x numbers for every j tokens in its window."""
    return x * w * (minimum(s, r) // j) / minimum(t, k)


@formula(
    unit="bytes",
    source="Gu2023, sec. 3.1; Dao2024, sec. 8.1",
    assumes="states are cut over tensor-parallel ranks as far as heads go",
)
def state_cache_bytes(x, w, t, k):
    """What a layer keeps of one request, whatever its length."""
    return x * w / minimum(t, k)


@formula(unit="bytes", source="TRL, trl/trainer/grpo_config.py: vllm_gpu_memory_utilization")
def engine_bytes(U, u):
    """What an engine on the same accelerator takes: a share u of its memory U."""
    return U * u


@formula(unit="bytes", source="PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp")
def workspace_bytes(M, n):
    """A workspace of M bytes for each of n threads that multiply matrices."""
    return M * n


@formula(unit="bytes", source="PyTorch, torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py: foreach_all_gather")
def gather_pool_bytes(M, x, z):
    """Two gathered units of M bytes together, and the cast shard of the largest, of x bytes, on z ranks."""
    return M + x / z


@formula(
    unit="bytes",
    source="PyTorch, c10/cuda/CUDACachingAllocator.cpp: a freed block serves its own stream alone",
    assumes="what a pool held at its fullest stays reserved",
)
def pool_reserve_bytes(M, x):
    """What a stream's pool of M bytes holds beside the x bytes that are live in it."""
    return maximum(M - x, 0)


@formula(unit="bytes", source="PyTorch, torch/cuda/memory.py: memory_reserved, memory_allocated")
def reserve_bytes(M, rho):
    """What the caching allocator holds beyond the tensors: rho of them."""
    return M * rho


@formula(
    unit="bytes",
    source=(
        "llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib with one rank and with several"
    ),
)
def parallel_bytes(M, n):
    """An amount that is there as soon as there is more than one rank."""
    return M * minimum(n - 1, 1)


@formula(
    unit="bytes",
    source="PyTorch, torch/cuda/memory.py: memory_allocated leaves out the context and what libraries hold",
)
def fixed_bytes(M):
    """An amount that was measured or documented, used as it stands."""
    return M


# ---- whole-model closed forms of the papers, beside which the walk over operations is checked ----


@formula(unit="bytes", source="Korthikanti2022, eq. 1", assumes="GPT layer, 16 bit, dropout, eager attention")
def gpt_activation_bytes(L, s, b, h, a):
    """Activations of all layers without parallelism."""
    return L * s * b * h * (34 + 5 * a * s / h)


@formula(unit="bytes", source="Korthikanti2022, eq. 2", assumes="GPT layer, 16 bit, dropout, eager attention")
def gpt_tensor_parallel_activation_bytes(L, s, b, h, a, t):
    """Activations of all layers with tensor parallelism and without sequence parallelism."""
    return L * s * b * h * (10 + 24 / t + 5 * a * s / (h * t))


@formula(unit="bytes", source="Korthikanti2022, eq. 4 and 5", assumes="GPT layer, 16 bit, dropout, eager attention")
def gpt_sequence_parallel_activation_bytes(L, s, b, h, a, t):
    """Activations of all layers with tensor and sequence parallelism."""
    return L * s * b * h * (34 / t + 5 * a * s / (h * t))


@formula(unit="bytes", source="Korthikanti2022, eq. 6", assumes="GPT layer, 16 bit, dropout")
def gpt_selective_activation_bytes(L, s, b, h, t):
    """Activations of all layers with tensor and sequence parallelism and selective recomputation."""
    return L * 34 * s * b * h / t


@formula(
    unit="bytes",
    source="Korthikanti2022, sec. 5, table 2",
    assumes="16 bit; one layer's input is kept, the rest recomputed",
)
def full_recompute_activation_bytes(L, s, b, h):
    """Inputs of all layers."""
    return 2 * s * b * h * L


@formula(unit="bytes", source="Korthikanti2022, sec. 4.2.3")
def interleaved_memory_factor(M, p, v):
    """Activations of the first stage under the interleaved schedule, from those under 1F1B."""
    return M * (1 + (p - 1) / (p * v))


@formula(unit="bytes", source="Pope2023, sec. 2.1", assumes="every layer attends to the whole context")
def kv_cache_bytes(L, k, dh, s, R, w):
    """Keys and values of R requests of s tokens."""
    return 2 * L * k * dh * s * R * w


@formula(unit="bytes", source="Rasmussen2006, ch. 2, on the errors of own runs", difference=True)
def calibration_bytes(M, f_site):
    """What own runs took more, or less, than was estimated."""
    return M * (f_site - 1)
