"""Scaling laws: how good a model gets from parameters, data and compute."""

from tonnage.formula import formula


@formula(unit="nats", source="Hoffmann2022, eq. 2 and 10", assumes="the authors' fit: 1.69, 406.4, 410.7, 0.34, 0.28")
def chinchilla_loss(N, D, E_inf, A_N, B_D, alpha, beta):
    """Loss of a model of N parameters after D tokens."""
    return E_inf + A_N / N**alpha + B_D / D**beta


@formula(unit="parameters", source="Hoffmann2022, eq. 4", assumes="C = 6 N D")
def optimal_parameters(C, A_N, B_D, alpha, beta):
    """Parameters that reach the lowest loss for a compute of C."""
    return (alpha * A_N / (beta * B_D)) ** (1 / (alpha + beta)) * (C / 6) ** (beta / (alpha + beta))


@formula(unit="tokens", source="Hoffmann2022, eq. 4", assumes="C = 6 N D")
def optimal_tokens(C, A_N, B_D, alpha, beta):
    """Tokens that reach the lowest loss for a compute of C."""
    return (beta * B_D / (alpha * A_N)) ** (1 / (alpha + beta)) * (C / 6) ** (alpha / (alpha + beta))
