"""From work and rates to time."""

from tonnage.kernel.formula import ceil_div, formula


@formula(unit="seconds", source="Chowdhery2022, app. B")
def compute_seconds(C, n, P, u):
    """Time of C FLOP on n accelerators that reach the share u of their peak."""
    return C / (n * P * u)


@formula(
    unit="seconds",
    source="Thakur2005: a message of n bytes takes alpha + n beta; DocumentB, section on the communication bottleneck",
    assumes="latency left out",
)
def transfer_seconds(M, W):
    """Time to send M bytes over a link, or to write or read them, at W bytes a second."""
    return M / W


@formula(unit="FLOP/s", source="Chowdhery2022, app. B")
def fleet_rate(n, P, u):
    """FLOP a second of n accelerators that reach the share u of their peak."""
    return n * P * u


@formula(unit="accelerators", source="Chowdhery2022, app. B")
def accelerators_for_time(C, tau, P, u):
    """Accelerators that do C FLOP in tau seconds, rounded up."""
    return ceil_div(C, tau * P * u)


@formula(
    unit="accelerators",
    source="DocumentB, section 5; Rajbhandari2020, sec. 5.3",
    assumes="the memory can be spread evenly",
)
def accelerators_for_memory(M, U):
    """Accelerators whose memory together holds M bytes, rounded up."""
    return ceil_div(M, U)


@formula(
    unit="seconds",
    source="Williams2009: the sloped part of the roofline; Pope2023, sec. 2: weights and keys are read in every pass",
)
def memory_seconds(M, W, u):
    """Time to read and write M bytes at the share u of a memory's bandwidth."""
    return M / (W * u)


@formula(unit="", source="Chowdhery2022, app. B: MFU without what is run again, HFU with it")
def flops_utilization(C, tau, n, P):
    """MFU of the model's FLOP, HFU of all that were done: their share of what n accelerators could do in the time."""
    return C / (tau * n * P)


@formula(unit="tokens/s", source="Chowdhery2022, app. B: the observed throughput")
def tokens_per_second(D, tau):
    """Training tokens a second."""
    return D / tau


@formula(unit="micro-batches", source="Narayanan2021, sec. 2.2")
def microbatches(m):
    """Micro-batches that pass through each stage in one step."""
    return m


@formula(
    unit="",
    source="Wu2024, abstract: slow nodes delay whole jobs",
    assumes=(
        "a step waits for its slowest node; nodes are slow independently of each other, all by as much; what is "
        "slow stays in the step's critical path"
    ),
)
def straggler_factor(kappa, q_slow, nodes):
    """How many times longer a step takes on average when each node is slow with probability q_slow."""
    return 1 + (kappa - 1) * (1 - (1 - q_slow) ** nodes)
