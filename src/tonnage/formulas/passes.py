"""Time of one forward pass of a served model: reads, arithmetic, experts that are touched."""

from tonnage.kernel.formula import formula, maximum, minimum


@formula(
    unit="seconds",
    source=(
        "aiconfigurator-core, gemm_perf: products of 1 to 4 096 rows lie between the larger of the two and their sum"
    ),
    assumes="the square root of the sum of squares",
)
def product_seconds(tau_read, tau_math):
    """Time of products that read their weights and multiply at the same time."""
    return (tau_read**2 + tau_math**2) ** 0.5


@formula(
    unit="experts",
    source="DeepSeek2024V3, sec. 2.1.2: a router chooses for each token",
    assumes="tokens choose experts independently and evenly",
)
def experts_touched(E, k_top, T):
    """Experts of E of which at least one of T tokens, with k_top choices each, chooses one."""
    return E * (1 - maximum(1 - k_top / E, 0) ** T)


@formula(unit="keys", source="Beltagy2020, sec. 3.1", assumes="all requests have the mean context")
def keys_in_reach(R, K, r):
    """Keys that R requests with K tokens of context in all see through a window of r."""
    return minimum(K, R * r)


@formula(
    unit="keys",
    source="Beltagy2020, sec. 3.1",
    assumes="prompts begin where they begin: the mean token sees half as many keys as the last",
)
def prompt_keys_in_reach(T, K, r):
    """Keys that T tokens of prompts see through a window of r, if they saw K without it."""
    return minimum(2 * K, T * r) - minimum(2 * K, T * r) ** 2 / (4 * maximum(K, 1))


@formula(
    unit="seconds",
    source="SGLang, sglang/srt/managers/scheduler.py: scheduler_recv_interval",
    assumes="requests come at any moment",
)
def poll_seconds(n_pass, tau):
    """Wait of a request for an engine that looks at what has come every n_pass passes of tau."""
    return (n_pass - 1) / 2 * tau


@formula(
    unit="tokens",
    source="Leviathan2022, eq. 1",
    assumes="each guess is taken with the same probability, whatever came before",
)
def tokens_per_pass(n_draft, p_take):
    """Tokens that a pass gives which checks n_draft guesses: those that are taken up to the first that is not, and
    one of its own.
    """
    return (1 - minimum(p_take, 0.999999) ** (n_draft + 1)) / (1 - minimum(p_take, 0.999999))
