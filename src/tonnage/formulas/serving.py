"""Memory of an inference engine."""

from tonnage.kernel.formula import ceil_div, formula, maximum, minimum


@formula(unit="requests", source="Kwon2023, sec. 4.3")
def requests(R):
    """Requests held at the same time."""
    return R


@formula(unit="bytes", source="Shoeybi2019, sec. 3", assumes="every tensor is cut evenly")
def weights_share_bytes(M, t):
    """One rank's part of weights of M bytes."""
    return M / t


@formula(unit="tokens", source="Kwon2023, sec. 4.1")
def block_tokens(s, B):
    """A context rounded up to whole blocks."""
    return ceil_div(s, B) * B


@formula(unit="blocks", source="Kwon2023, sec. 4.1")
def context_blocks(s, B):
    """Blocks that a context fills."""
    return ceil_div(s, B)


@formula(unit="tokens", source="vLLM, vllm/config/vllm.py: max_in_flight_tokens")
def tokens_in_flight(T, n_batches):
    """Tokens that are being computed while the blocks behind them are still held."""
    return T * n_batches


@formula(
    unit="blocks",
    source="vLLM, vllm/v1/kv_cache_interface.py: SlidingWindowSpec.max_admission_blocks_per_request",
    assumes="one block more, because a window need not begin where a block does",
)
def window_blocks(s, r, T, B):
    """Blocks that a window of r tokens holds while T tokens are in flight ahead of it."""
    return ceil_div(minimum(r - 1 + T, s), B) + 1


@formula(
    unit="tokens", source="vLLM, vllm/v1/kv_cache_interface.py: SlidingWindowSpec.max_admission_blocks_per_request"
)
def window_block_tokens(s, r, T, B):
    """The same in tokens."""
    return (ceil_div(minimum(r - 1 + T, s), B) + 1) * B


@formula(
    unit="bytes",
    source="vLLM, vllm/v1/core/sched/scheduler.py: the token budget is of a step, of all requests together",
    assumes="the budget is one request's; shared by several it takes at most a block more of each",
)
def in_flight_bytes(U, M):
    """What windows hold of the tokens of a step: a request with all of them has U bytes, between steps M."""
    return U - M


@formula(unit="blocks", source="vLLM, vllm/v1/kv_cache_interface.py: MambaSpec.max_memory_usage_bytes")
def state_blocks(n_copies):
    """Blocks that a recurrent state takes: one each for the state and for its copies at ends of prefixes."""
    return n_copies


@formula(unit="tokens", source="vLLM, vllm/platforms/interface.py: update_block_size_for_backend")
def tokens_beside_state(M, w, B):
    """Tokens of a block that is as large as a state of M bytes; a token takes w bytes of it."""
    return maximum(ceil_div(M, w * B), 1) * B


@formula(unit="bytes", source="vLLM, vllm/v1/core/kv_cache_planning.py: unify_kv_cache_spec_page_size")
def block_growth_bytes(M, B, s, r):
    """What one more token adds to a layer on average: a token's part of a block of M bytes, until r tokens are held."""
    return M / B * minimum(maximum(r - s, 0), 1)


@formula(unit="layers", source="vLLM, vllm/v1/core/kv_cache_planning.py: _get_kv_cache_groups_uniform_page_size")
def padded_layers(l, g):
    """Layers of one kind, filled up to whole groups of g."""
    return ceil_div(l, g) * g


@formula(unit="bytes", source="Pope2023, sec. 2.1", assumes="a rank holds at least one key/value head")
def token_growth_bytes(x, w, s, r, j, t, k):
    """What one more token adds to a layer's cache on average: nothing once its window of r tokens is full."""
    return x * w * minimum(maximum(r - s, 0), 1) / (j * minimum(t, k))


@formula(unit="bytes", source="vLLM, vllm/v1/worker/gpu/model_runner.py: profile_run on max_num_batched_tokens")
def batch_bytes(x, w, T):
    """x numbers for each token of a forward pass."""
    return x * w * T


@formula(unit="bytes", source="vLLM, vllm/v1/worker/gpu/model_runner.py: profile_run on max_num_batched_tokens")
def split_batch_bytes(x, w, T, t):
    """x numbers for each token of a forward pass, cut over tensor ranks."""
    return x * w * T / t


@formula(unit="bytes", source="vLLM, vllm/v1/worker/gpu/model_runner.py: _dummy_sampler_run on max_num_seqs")
def sampler_bytes(V, R, w):
    """Logits of R requests, w bytes each with all their copies."""
    return V * R * w


@formula(unit="bytes", source="vLLM, vllm/config/cache.py: gpu_memory_utilization")
def unclaimed_bytes(U, u, M):
    """The part of an accelerator's memory that the engine is told not to use, and that nobody else holds; others
    hold M bytes.
    """
    return maximum(U * (1 - u) - M, 0)


@formula(unit="bytes", source="Kwon2023, sec. 4.2; vLLM, vllm/config/cache.py: gpu_memory_utilization")
def cache_pool_bytes(U, M):
    """What is left of an accelerator for the cache, beside everything else."""
    return maximum(U - M, 0)


@formula(unit="requests", source="vLLM, vllm/v1/core/kv_cache_utils.py: get_max_concurrency_for_kv_cache_config")
def concurrency(U, M, R):
    """Requests of M bytes that a pool of U bytes holds, at most the R that the engine runs at once."""
    return minimum(U // M, R)


@formula(unit="tokens", source="vLLM, vllm/v1/core/kv_cache_utils.py: get_kv_cache_capacity")
def pool_tokens(U, M, s):
    """Tokens of cache as vLLM prints them: how often requests of s tokens and M bytes fit into U bytes, times s."""
    return U * s // M


@formula(unit="replicas", source="Kwon2023, sec. 4.6", assumes="replicas share no memory")
def replicas(n_copies):
    """Copies of a model that serve side by side."""
    return n_copies


@formula(unit="ranks", source="Narayanan2021, sec. 3")
def ranks_of_replica(n):
    """Accelerators of one replica."""
    return n


@formula(
    unit="bytes",
    source="PyTorch, c10/cuda/CUDACachingAllocator.cpp: kRoundLarge, kMinLargeAlloc, kSmallSize, should_split",
    assumes=(
        "a tensor of 10 MiB and more has a segment of its own, in multiples of 2 MiB, of which no rest up to 1 "
        "MiB is given to others"
    ),
)
def allocator_slack_bytes(M):
    """What a tensor of M bytes takes beyond them."""
    return (-M % 2097152) * minimum(maximum(1048577 - (-M % 2097152), 0), 1) * minimum(M // 10485760, 1)


@formula(unit="bytes", source="vLLM, vllm/model_executor/layers/rotary_embedding/base.py: cos_sin_cache")
def rotary_table_bytes(s, x, w):
    """Cosines and sines of s positions, x numbers each."""
    return s * x * w


@formula(
    unit="bytes",
    source="vLLM, vllm/v1/sample/ops/topk_topp_triton.py: a row of logits in fp32 for each program",
    assumes="as many programs as an H100 has multiprocessors, or requests where they are fewer",
)
def sampler_row_bytes(V, R, n):
    """The sampler's rows of logits, n at most."""
    return 4 * V * minimum(R, n)


@formula(unit="bytes", source="vLLM, vllm/model_executor/model_loader/default_loader.py: get_all_weights")
def read_bytes(M, U):
    """What is read of weights that take M bytes, U of which are in no file."""
    return maximum(M - U, 0)


@formula(unit="bytes", source="vLLM, vllm/config/offload.py: cpu_offload_gb")
def placed_bytes(M, U):
    """What of M bytes of weights goes to the accelerator where U bytes stay in host memory."""
    return maximum(M - U, 0)


@formula(unit="bytes", source="transformers, generation/utils.py: prefill before the first token of the answer")
def early_bytes(M, U):
    """What a pass over the prompts needs at its peak, M bytes, beyond the U bytes of cache that only the answers
    add.
    """
    return maximum(M - U, 0)
