"""Memory of an inference engine."""

from tonnage.formula import ceil_div, formula, maximum, minimum


@formula(unit="requests", source="Kwon2023, sec. 4.3")
def requests(R):
    """Requests held at the same time."""
    return R


@formula(unit="bytes", source="Shoeybi2019, sec. 3", assumes="every tensor is cut evenly")
def weights_share_bytes(M, t):
    """One rank's part of weights of M bytes."""
    return M / t


@formula(unit="tokens", source="Kwon2023, sec. 4.1")
def block_tokens(s, x):
    """A context rounded up to blocks of x tokens."""
    return ceil_div(s, x) * x


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
def unclaimed_bytes(U, u):
    """The part of an accelerator's memory that the engine is told not to use."""
    return U * (1 - u)


@formula(unit="bytes", source="Kwon2023, sec. 4.2; vLLM, vllm/config/cache.py: gpu_memory_utilization")
def cache_pool_bytes(U, M):
    """What is left of an accelerator for the cache, beside everything else."""
    return maximum(U - M, 0)


@formula(unit="requests", source="vLLM, vllm/v1/core/kv_cache_utils.py: get_max_concurrency_for_kv_cache_config")
def concurrency(U, M):
    """Requests of M bytes that a pool of U bytes holds."""
    return U // M


@formula(unit="tokens", source="vLLM, vllm/v1/core/kv_cache_utils.py: get_kv_cache_capacity")
def pool_tokens(R, s):
    """Tokens of cache as engines print them: the requests that fit, times their context."""
    return R * s
