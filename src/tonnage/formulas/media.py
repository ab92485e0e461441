"""Arithmetic of towers that encode images and sounds."""

from tonnage.kernel.formula import formula


@formula(unit="FLOP", source="Kaplan2020, sec. 2.1: two FLOP for each parameter and token")
def encoder_matrix_flops(N, T):
    """FLOP of the matrix products of a tower: N parameters over T patches."""
    return 2 * N * T


@formula(unit="FLOP", source="Korthikanti2022, sec. 4.1: attention's core")
def encoder_core_flops(C, T, s):
    """FLOP of attention over T patches of which each sees s, with C for a patch and a key."""
    return C * T * s
