"""Pipelines over accelerators that are not alike."""

from tonnage.kernel.formula import formula, maximum


@formula(
    unit="seconds",
    source=(
        "DenningBuzen1978, bottleneck analysis: jobs that go round take at least as long as all stations, and as "
        "all of them at the slowest"
    ),
    assumes="tau: through all stages, tau_step: through the slowest; fixed times, so that the bound is reached",
)
def unlike_round_seconds(tau, tau_step, n_batches):
    """Time from one token of a request to its next where n_batches parts of the requests go round a pipeline of
    unlike stages.
    """
    return maximum(tau, n_batches * tau_step)


@formula(
    unit="seconds",
    source="Zheng2022, slicing into stages: the sum of the stages, and the slowest one for every further micro-batch",
    assumes="tau: through all stages, tau_step: through the slowest",
)
def unlike_step_seconds(tau, tau_step, m):
    """Time of m micro-batches through a pipeline of unlike stages."""
    return tau + (m - 1) * tau_step
