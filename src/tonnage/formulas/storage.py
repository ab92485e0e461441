"""Checkpoints and disks."""

from tonnage.formula import formula


@formula(unit="seconds", source="DocumentB, section on the communication bottleneck", assumes="latency left out")
def transfer_seconds(M, W):
    """Time to write or read M bytes at W bytes a second."""
    return M / W
