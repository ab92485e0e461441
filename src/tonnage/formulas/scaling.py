"""Scaling laws: how good a model gets from parameters, data and compute."""

from tonnage.kernel.formula import formula


@formula(unit="nats", source="Hoffmann2022, eq. 2 and 10")
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


@formula(unit="FLOP", source="Hoffmann2022, eq. 2 and 4: the frontier's loss, solved for C", assumes="C = 6 N D")
def optimal_compute(N, D, A_N, B_D, alpha, beta):
    """Compute with which the best model for it reaches the loss of a model of N parameters after D tokens."""
    return 6 * (
        (
            A_N * (alpha * A_N / (beta * B_D)) ** (-alpha / (alpha + beta))
            + B_D * (alpha * A_N / (beta * B_D)) ** (beta / (alpha + beta))
        )
        / (A_N / N**alpha + B_D / D**beta)
    ) ** ((alpha + beta) / (alpha * beta))


@formula(
    unit="parameters",
    source="Kaplan2020, table 6 and sec. 6.3",
    assumes=(
        "the critical batch size, which takes twice the least compute; embeddings not counted; a PF-day is 8.64e19 FLOP"
    ),
)
def kaplan_optimal_parameters(C):
    """Parameters that reach the lowest loss for a compute of C, as was held in 2020."""
    return 1.3e9 * (C / 2 / 8.64e19) ** 0.73


@formula(
    unit="tokens",
    source="Kaplan2020, table 6 and sec. 6.3",
    assumes="the critical batch size, which takes twice the least compute; one epoch; a PF-day is 8.64e19 FLOP",
)
def kaplan_optimal_tokens(C):
    """Tokens that reach the lowest loss for a compute of C, as was held in 2020."""
    return 2e10 * (C / 2 / 8.64e19) ** 0.27
