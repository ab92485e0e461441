"""Bytes that ranks send each other."""

from tonnage.kernel.formula import formula


@formula(
    unit="bytes",
    source="Narayanan2021, sec. 3.2; Shoeybi2019, sec. 3; nccl-tests, doc/PERFORMANCE.md",
    assumes="ring all-reduce of the residual stream, twice forward and twice backward a layer",
)
def tensor_parallel_traffic(L, s, b, h, w, t, m):
    """What one rank sends in a step for tensor parallelism."""
    return 4 * L * (2 * (t - 1) / t) * s * b * h * w * m


@formula(
    unit="bytes",
    source="Narayanan2021, sec. 3.2 and 3.5; nccl-tests, doc/PERFORMANCE.md",
    assumes="as without recomputation, and the forward pass once more",
)
def tensor_parallel_recompute_traffic(L, s, b, h, w, t, m):
    """What one rank sends in a step for tensor parallelism with full recomputation."""
    return 6 * L * (2 * (t - 1) / t) * s * b * h * w * m


@formula(unit="bytes/s", source="Thakur2005: a message of n bytes takes alpha + n beta")
def link_rate(W):
    """Bytes a second that a link moves in one direction."""
    return W


@formula(unit="bytes", source="Narayanan2021, sec. 3.2: of each micro-batch")
def traffic_in_a_step(M, m):
    """What a rank sends in m micro-batches, M bytes in each."""
    return M * m
