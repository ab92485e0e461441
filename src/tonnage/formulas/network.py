"""What collectives send, and how long it takes over links of two levels."""

from tonnage.formula import formula


@formula(unit="bytes", source="Thakur2005, sec. 4.1 and 4.4; nccl-tests, doc/PERFORMANCE.md")
def ring_bytes(M, n):
    """What one of n ranks sends of M bytes that pass round a ring."""
    return M * (n - 1) / n


@formula(
    unit="seconds",
    source="nccl-tests, doc/PERFORMANCE.md: each rank sends to all others; Thakur2005: alpha + n beta",
    assumes="n ranks in each of some nodes, which send at W inside and at W_out each to other nodes, one after the other",
)
def hierarchical_exchange_seconds(M, n, nodes, W, W_out):
    """Time of an all-to-all in which a rank has M bytes for all ranks together."""
    return M / nodes * (n - 1) / n / W + M * (nodes - 1) / nodes / W_out
