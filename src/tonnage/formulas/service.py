"""What users of a served model see and pay: from seconds of a token to rates, prices and energy."""

from tonnage.kernel.formula import ceil_div, formula


@formula(
    unit="seconds",
    source="vLLM, vllm/benchmarks/serve.py: TPOT is what an answer takes after its first token, over its other tokens",
)
def later_tokens_seconds(O, tau):
    """Time of all tokens of an answer but the first, tau each."""
    return (O - 1) * tau


@formula(unit="tokens/s", source="vLLM, vllm/benchmarks/serve.py: TPOT, its reciprocal")
def user_tokens_per_second(tau):
    """Tokens a second that one user sees when a token takes tau."""
    return 1 / tau


@formula(unit="tokens/s", source="vLLM, vllm/benchmarks/serve.py: output_throughput")
def answered_tokens_per_second(X, O):
    """Tokens of answers a second, of X requests a second with O tokens each."""
    return X * O


@formula(unit="tokens/s", source="vLLM, vllm/benchmarks/serve.py: total_token_throughput")
def all_tokens_per_second(X, s, O):
    """Tokens of prompts and answers a second; those of a prompt that are cached count too."""
    return X * (s + O)


@formula(unit="tokens/s", source="vLLM, vllm/benchmarks/serve.py: output_throughput")
def accelerator_tokens_per_second(tps, n):
    """Tokens a second for each of n accelerators."""
    return tps / n


@formula(unit="", source="Pope2023, sec. 2", assumes="what a request costs is the time of the passes that it takes")
def prompt_cost_share(tau_m, tau_d):
    """The prompt's part of what a request costs: its time over that of the prompt and of the answer."""
    return tau_m / (tau_m + tau_d)


@formula(unit="", source="Pope2023, sec. 2", assumes="what a request costs is the time of the passes that it takes")
def answer_cost_share(tau_m, tau_d):
    """The answer's part of what a request costs."""
    return tau_d / (tau_m + tau_d)


@formula(unit="seconds", source="Pope2023, sec. 2", assumes="all requests of a pass share its time evenly")
def shared_answer_seconds(O, tau_d, R):
    """One request's part of the passes that make its answer, beside R - 1 others."""
    return (O - 1) * tau_d / R


@formula(unit="seconds", source="DocumentD, section on cloud and own servers")
def paid_seconds(tau):
    """Time for which machines are paid."""
    return tau


@formula(
    unit="USD",
    source="DocumentD, section on cloud and own servers",
    assumes="the machines are paid whether they are busy or not",
)
def usd_per_million_tokens(USD_all, tps):
    """Price of a million tokens of machines that cost USD_all an hour together."""
    return USD_all / 3600 / tps * 1_000_000


@formula(unit="joules", source="Patterson2021, the equations of energy and of CO2e", assumes="power is even over time")
def joules_per_million_tokens(en, tps):
    """Energy of a million tokens, where an hour takes en."""
    return en / 3600 / tps * 1_000_000


@formula(
    unit="replicas",
    source="Little1961, L = lambda W",
    assumes="requests are dealt out evenly; a replica keeps up only with fewer than X_max",
)
def replicas_for_rate(X, X_max):
    """The fewest replicas that keep up with X requests a second."""
    return X // X_max + 1


@formula(
    unit="replicas",
    source="vLLM, vllm/benchmarks/serve.py: goodput",
    assumes="requests, or users, are dealt out evenly",
)
def replicas_within_limits(X, X_max):
    """The fewest replicas for X requests a second, or users, of which one serves X_max within its limits."""
    return ceil_div(X, X_max)


@formula(
    unit="USD",
    source="DeepSeekPrices, Deduction Rules: the expense is the number of tokens times their price",
    assumes="tokens of the prompt that are cached cost as such, all others the same",
)
def request_usd(s, s_hit, O, USD_in, USD_hit, USD_out):
    """Price of one request to a hosted model, by prices of a million tokens."""
    return ((s - s_hit) * USD_in + s_hit * USD_hit + O * USD_out) / 1_000_000


@formula(unit="USD", source="DeepSeekPrices, Deduction Rules: the expense is the number of tokens times their price")
def request_usd_per_million_tokens(USD_req, s, O):
    """Price of a million tokens of such requests, prompts and answers alike."""
    return USD_req / (s + O) * 1_000_000


@formula(unit="USD", source="DeepSeekPrices, Deduction Rules: the expense is the number of tokens times their price")
def requests_usd(USD_req, n_req):
    """Price of n_req requests to a hosted model."""
    return USD_req * n_req


@formula(
    unit="requests",
    source="DocumentD, section on cloud and own servers",
    assumes="the machines are paid day and night, a hosted model by the request",
)
def break_even_requests(USD_all, USD_req):
    """Requests a day from which machines that cost USD_all an hour are cheaper than a hosted model."""
    return 24 * USD_all / USD_req


@formula(unit="tokens", source="DocumentD, section on cloud and own servers", assumes="as of the requests")
def break_even_tokens(USD_all, USD_req, s, O):
    """The tokens of these requests, prompts and answers."""
    return 24 * USD_all / USD_req * (s + O)


@formula(unit="requests", source="DocumentD, section on cloud and own servers")
def requests_a_day(X):
    """Requests of a day at X a second."""
    return 86_400 * X
