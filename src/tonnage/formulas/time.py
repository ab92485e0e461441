"""From work and rates to time."""

from tonnage.formula import ceil_div, formula


@formula(unit="seconds", source="Chowdhery2022, app. B")
def compute_seconds(C, n, P, u):
    """Time of C FLOP on n accelerators that reach the share u of their peak."""
    return C / (n * P * u)


@formula(unit="seconds", source="Thakur2005: a message of n bytes takes alpha + n beta", assumes="latency left out")
def link_seconds(M, W):
    """Time to send M bytes over a link of W bytes a second."""
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
