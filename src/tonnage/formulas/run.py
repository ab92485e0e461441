"""A whole training run: from tokens to steps, days and accelerator-hours, and back from a deadline or a budget."""

from tonnage.kernel.formula import ceil_div, formula


@formula(unit="tokens", source="Narayanan2021, sec. 2.2; Brown2020, table 2.1: batch sizes in tokens")
def tokens_per_step(s, b, m, d):
    """Tokens of one step: d replicas of m micro-batches of b sequences of s tokens."""
    return s * b * m * d


@formula(unit="tokens", source="Brown2020, table 2.1: all models were trained for a total of 300 billion tokens")
def tokens_given(D):
    """Tokens that a run is to see."""
    return D


@formula(unit="tokens", source="Muennighoff2023, abstract: an epoch is one pass over the data")
def tokens_of_epochs(n_epochs, D_set):
    """Tokens of n_epochs passes over a data set."""
    return n_epochs * D_set


@formula(unit="epochs", source="Muennighoff2023, abstract: an epoch is one pass over the data")
def epochs_of_tokens(D, D_set):
    """How often a run of D tokens sees its data set."""
    return D / D_set


@formula(unit="steps", source="Brown2020, table 2.1: batch sizes in tokens, and tokens in all")
def steps_for_tokens(D, s, b, m, d):
    """Steps that see D tokens; the last one may see more."""
    return ceil_div(D, s * b * m * d)


@formula(unit="steps", source="Megatron-LM, megatron/training/arguments.py: train_iters")
def steps_given(S):
    """Steps that a run is to make."""
    return S


@formula(
    unit="accelerators",
    source="Narayanan2021, sec. 3.1: p t d = n; Megatron-LM, megatron/core/parallel_state.py: context parallelism",
)
def accelerators_of_plan(t, p, c, d):
    """Accelerators of d replicas of p stages of t x c ranks."""
    return t * p * c * d


@formula(unit="accelerator-hours", source="Touvron2023, table 15: GPU-hours are the GPUs times the hours of the run")
def accelerator_hours(n, tau):
    """Hours of all accelerators together, those included in which nothing lasting is done."""
    return n * tau / 3600


@formula(unit="accelerators", source="DocumentB, section 4", assumes="twice the accelerators take half the time")
def accelerators_by_division(n_hours, tau):
    """Accelerators that do n_hours of work in the time tau, rounded up."""
    return ceil_div(n_hours * 3600, tau)


@formula(
    unit="accelerator-hours", source="DocumentD, section on cloud and own servers: what is rented is paid by the hour"
)
def hours_of_budget(USD_budget, USD_hour):
    """Accelerator-hours that a budget buys."""
    return USD_budget / USD_hour


@formula(unit="accelerator-hours", source="Touvron2023, table 15: a budget in GPU-hours")
def hours_given(n_hours):
    """Accelerator-hours that may be spent."""
    return n_hours


@formula(unit="steps", source="Touvron2023, table 15: GPU-hours are the GPUs times the hours of the run")
def steps_of_hours(n_hours, n, tau_step, eta):
    """Whole steps that n accelerators make in n_hours of accelerator time, of which the share eta is productive."""
    return n_hours * 3600 * eta / (n * tau_step) // 1
