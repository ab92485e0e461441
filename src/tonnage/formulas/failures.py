"""Failures of a cluster, checkpoints, and what share of the time is left: failures come independently, at a constant
rate.
"""

from tonnage.kernel.formula import exp, expm1, formula, minimum


@formula(
    unit="seconds",
    source="Kokolis2024, sec. III: failures a node-day, and MTTF inverse to the number of GPUs",
    assumes="every accelerator, with its share of node and network, fails alike",
)
def accelerator_mtbf(n, tau, F):
    """Mean time between failures of one accelerator and its share of everything, where n of them failed F times in
    the time tau.
    """
    return n * tau / F


@formula(unit="seconds", source="Kokolis2024, sec. III")
def mtbf_given(MTBF):
    """Mean time between failures, as given."""
    return MTBF


@formula(unit="seconds", source="Young1974; Daly2006, fig. 3: R")
def pause(tau):
    """A time in which nothing is trained."""
    return tau


@formula(unit="seconds", source="Young1974", assumes="a checkpoint takes far less than the time between failures")
def young_interval(delta, MTBF):
    """Training between two checkpoints that loses least time, to first order."""
    return (2 * delta * MTBF) ** 0.5


@formula(
    unit="seconds", source="Daly2006, eq. 37", assumes="delta < 2 MTBF; beyond that 8/9 MTBF, where the paper says MTBF"
)
def daly_interval(delta, MTBF):
    """Training between two checkpoints that loses least time, to higher order."""
    return (2 * minimum(delta, 2 * MTBF) * MTBF) ** 0.5 * (
        1 + minimum(delta / (2 * MTBF), 1) ** 0.5 / 3 + minimum(delta / (2 * MTBF), 1) / 9
    ) - minimum(delta, 2 * MTBF)


@formula(
    unit="",
    source="Daly2006, the complete model: MTBF e^(R / MTBF) (e^((tau + delta) / MTBF) - 1) Ts / tau",
    assumes="failures also interrupt checkpoints and restarts",
)
def goodput(tau_c, delta, MTBF, tau_r):
    """Share of the time in which steps are made that last: the rest goes to checkpoints, to work that is done again,
    and to restarts.
    """
    return minimum(tau_c / (MTBF * exp(tau_r / MTBF) * expm1((tau_c + delta) / MTBF)), 1)


@formula(unit="failures", source="Kokolis2024, sec. III")
def failures_expected(tau, MTBF):
    """Failures in the time tau, on average."""
    return tau / MTBF
