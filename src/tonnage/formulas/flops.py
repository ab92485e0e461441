"""Arithmetic: a multiply-add is two FLOP."""

from tonnage.kernel.formula import formula, minimum


@formula(unit="FLOP", source="Kaplan2020, sec. 2.1, table 1")
def matrix_flops(Na, T):
    """Forward matrix products of T tokens: two FLOP a parameter that multiplies them."""
    return 2 * Na * T


@formula(
    unit="FLOP",
    source="Dao2023, sec. 4.1",
    assumes="causal: a token attends to itself and to those before it, (s + 1) / 2 on average",
)
def causal_attention_flops(y, L, T, s):
    """Scores and weighted values of T tokens in sequences of s, y FLOP for each token and key."""
    return y * L * T * (s + 1) / 2


@formula(unit="FLOP", source="Vaswani2017, table 1; Hoffmann2022, app. F")
def full_attention_flops(y, L, T, s):
    """Scores and weighted values of T tokens, each attending to all s of its sequence."""
    return y * L * T * s


@formula(
    unit="FLOP",
    source="Beltagy2020, sec. 3.1; Jiang2023, sec. 2",
    assumes="causal: a window of r counts the token itself",
)
def windowed_attention_flops(y, L, T, s, r):
    """Scores and weighted values of T tokens in sequences of s, each seeing itself and at most r - 1 tokens before
    it.
    """
    return y * L * T * (minimum(s, r) - minimum(s, r) * (minimum(s, r) - 1) / (2 * s))


@formula(unit="FLOP", source="Kaplan2020, sec. 2.1")
def token_flops(y, L, T):
    """Arithmetic that depends on tokens alone: recurrences, tied heads."""
    return y * L * T


@formula(unit="", source="Kaplan2020, sec. 2.1", assumes="backward costs twice forward")
def passes(x):
    """Forward passes that a step's arithmetic amounts to: 3 without recomputation."""
    return x


@formula(unit="FLOP", source="Chowdhery2022, app. B", assumes="as one convention counts them, which the source names")
def counted_flops(y, T):
    """Training arithmetic of T tokens, forward and backward, at y FLOP for each."""
    return y * T


@formula(
    unit="FLOP",
    source="Narayanan2021, sec. 5.1, eq. 3, and appendix",
    assumes="GPT's layers, four times as wide inside; attention not halved; x as in passes, but of the head always "
    "3: with recomputation "
    "x is 4, the paper's 96BslH^2 (1 + s/6H + V/16lH)",
)
def gpt_training_flops(x, T, L, h, s, V):
    """Training arithmetic of T tokens in sequences of s whose layers run as often as x forward passes."""
    return 24 * x * T * L * h**2 * (1 + s / (6 * h) + V / (4 * x * L * h))
