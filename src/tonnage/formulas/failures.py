"""Failures of a cluster, checkpoints, and what share of the time is left: failures come independently, at a constant
rate.
"""

from tonnage.kernel.formula import erlang_b, exp, expm1, formula, maximum, minimum, poisson_excess


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


@formula(unit="seconds", source="Kokolis2024, sec. III", assumes="failures of each cause come independently")
def mtbf_of_losses(MTBF, share_lost):
    """Mean time between failures that lose the nearest checkpoint: the share share_lost of all."""
    return MTBF / share_lost


@formula(unit="seconds", source="Kokolis2024, sec. III", assumes="failures of each cause come independently")
def mtbf_of_others(MTBF, share_lost):
    """Mean time between failures that the nearest checkpoint outlives."""
    return MTBF / (1 - share_lost)


@formula(
    unit="bytes/s",
    source="Wang2023GEMINI, abstract",
    assumes="each accelerator copies its share over a link of its own; the copy to a peer goes between the traffic of "
    "training, and costs no time",
)
def host_links_rate(W, n):
    """Bytes a second that n accelerators copy to the memory of their hosts, each over a link of W."""
    return W * n


@formula(unit="nodes", source="Little1961, L = lambda W", assumes="every node is repaired in the same mean time")
def repairs_at_once(tau_rep, MTBF, share_node):
    """Nodes in repair, on average, where the share share_node of the failures takes a node for tau_rep."""
    return tau_rep * share_node / MTBF


@formula(
    unit="",
    source="ErlangB",
    assumes="failures come independently, at a constant rate while training runs; training waits when one node more "
    "than there are spares is in repair",
)
def time_with_nodes(n_spare, n_rep):
    """Share of the time in which no more nodes are in repair than there are spares."""
    return 1 - erlang_b(n_spare + 1, n_rep)


@formula(
    unit="",
    source="Little1961, L = lambda W; ErlangB",
    assumes="nodes in repair are Poisson distributed; each that has no spare stops its replicas, the others go on; "
    "never worse than to wait",
)
def speed_with_replicas_left(n_spare, n_rep, n_gone, d):
    """Mean share of d replicas that train, where those without a node are left out until it is repaired."""
    return maximum(1 - minimum(poisson_excess(n_spare, n_rep) * n_gone / d, 1), 1 - erlang_b(n_spare + 1, n_rep))
