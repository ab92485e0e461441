"""Host memory: what the processes of a node hold outside of their accelerators."""

from tonnage.kernel.formula import formula, minimum, power_of_two


@formula(unit="ranks", source="PyTorch, torch/distributed/run.py", assumes="one process for each accelerator")
def ranks_on_node(ranks):
    """Processes that share the memory of a node."""
    return ranks


@formula(
    unit="bytes",
    source="PyTorch, aten/src/ATen/core/CachingHostAllocator.h: roundSize, a power of two",
    assumes="one block of M bytes",
)
def pinned_rounding(M):
    """What PyTorch's allocator of pinned memory adds to a block of M bytes, whose size it rounds up to a power of
    two.
    """
    return power_of_two(M) - M


@formula(
    unit="bytes",
    source="PyTorch, torch/utils/data/dataloader.py: prefetch_factor 2",
    assumes="token ids, labels and a mask of 8 bytes each",
)
def loader_batch_bytes(s, b, n_copies):
    """n_copies batches of b sequences of s tokens that data loaders hold ready."""
    return 3 * 8 * s * b * n_copies


@formula(unit="bytes", source="PyTorch, torch/utils/data/dataloader.py: num_workers")
def loader_processes_bytes(M, n_copies):
    """M bytes for each of n_copies processes that load data."""
    return M * n_copies


@formula(
    unit="cores",
    source="PyTorch, torch/utils/data/dataloader.py: _check_worker_number_rationality",
    assumes="a core for each process and each of its data loaders; the system's own are left out",
)
def process_cores(ranks, n_copies):
    """Cores for ranks processes with n_copies data loaders each."""
    return ranks * (1 + n_copies)


@formula(unit="bytes", source="transformers, modeling_utils.py: save_pretrained, max_shard_size")
def saved_shard_bytes(M, U):
    """What is copied to host memory to be saved of M bytes, in files of at most U."""
    return minimum(M, U)


@formula(unit="bytes", source="DeepSpeed, deepspeed/runtime/swap_tensor", assumes="buffers of one size")
def swap_buffer_bytes(n_copies, x, w):
    """Pinned buffers through which tensors go to NVMe and back: n_copies of x elements."""
    return n_copies * x * w


@formula(
    unit="tokens",
    source="vLLM, vllm/config/cache.py: kv_offloading_size is summed over all tensor ranks",
    assumes="each rank keeps its own part",
)
def tier_tokens(U, M):
    """Tokens that U bytes beside the accelerators hold, at M bytes a token on all ranks."""
    return U / M


@formula(
    unit="bytes/s",
    source="Williams2009, sec. 3: where bandwidth and computing take as long",
    assumes="latency left out",
)
def break_even_bandwidth(M, tau):
    """Bytes a second from which M bytes are loaded sooner than they are computed in tau."""
    return M / tau


@formula(
    unit="seconds",
    source=(
        "DeepSpeed, csrc/includes/cpu_adam.h: Step_AVX reads gradient, weight and moments, and writes all but "
        "the gradient"
    ),
    assumes="ranks of a node share its memory; nothing is computed on accelerators meanwhile",
)
def host_update_seconds(N, w, ranks, W):
    """Time in which the processors of a node update N parameters of each rank, reading and writing w bytes for each."""
    return ranks * N * w / W
