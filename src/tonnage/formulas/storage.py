"""Checkpoints and disks."""

from tonnage.formula import formula


@formula(unit="seconds", source="DocumentD, section on training")
def transfer_seconds(M, W):
    """Time to write or read M bytes at W bytes a second."""
    return M / W
