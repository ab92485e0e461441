"""A replica under load: how many requests it has, how many prompts come with a pass, how long they wait."""

from tonnage.kernel.formula import exp, expm1, formula, maximum, minimum


@formula(unit="requests", source="Little1961, L = lambda W")
def requests_inside(X, tau):
    """Requests inside of anything through which X a second pass and in which each stays tau, on average."""
    return X * tau


@formula(unit="requests/s", source="Little1961, L = lambda W", assumes="whoever leaves is followed by the next at once")
def closed_loop_rate(R, tau):
    """Requests a second of R users who each have one request inside for tau."""
    return R / tau


@formula(unit="tokens", source="Kleinrock1975, ch. 5: a long one is met more often than a short one")
def mean_context(s, O, cv2):
    """Tokens of context of a request that decodes, at a moment that anybody picks: its prompt, and half of an answer
    of O tokens whose squared coefficient of variation is cv2.
    """
    return s + O * (1 + cv2) / 2


@formula(unit="pairs", source="Kleinrock1975, ch. 5: the mean of a square", assumes="attention is causal")
def mean_prompt_pairs(s, s_hit, cv2):
    """Pairs of a token and a key of a prompt of s tokens of which s_hit are cached; cv2 is that of the prompt's
    length.
    """
    return (s * s * (1 + cv2) + s - s_hit * s_hit - s_hit) / 2


@formula(unit="prompts", source="Yu2022, abstract: scheduling at the granularity of an iteration")
def prompts_per_pass(R, O):
    """Prompts that come with a decoding pass of R requests when as many begin as end; prefill makes the first
    token.
    """
    return R / maximum(O - 1, 1)


@formula(unit="prompts", source="Kleinrock1975, ch. 2: of a Poisson number, the mean of those that are not 0")
def prompts_together(n_new):
    """Prompts of a pass that has any, where n_new come with each pass on average."""
    return -maximum(n_new, 1e-9) / expm1(-maximum(n_new, 1e-9))


@formula(
    unit="",
    source="Kleinrock1975, ch. 2: the balance of a chain of two states",
    assumes="arrivals are a Poisson process",
)
def share_of_prompt_passes(X, tau_d, tau_m):
    """Passes that have prompts, as a share of all: prompts come during a pass of tau_d without them or of tau_m with
    them, for the next.
    """
    return (1 - exp(-X * tau_d)) / (1 - exp(-X * tau_d) + exp(-X * tau_m))


@formula(unit="seconds", source="Agrawal2024, abstract: new requests join without a pause of what decodes")
def mean_pass_seconds(share_m, tau_d, tau_m):
    """A pass on average: the share share_m of them has prompts and takes tau_m, the others tau_d."""
    return (1 - share_m) * tau_d + share_m * tau_m


@formula(unit="seconds", source="Kleinrock1975, ch. 5: residual life")
def residual_seconds(share_m, tau_d, tau_m):
    """What is left of the pass that runs when a request comes."""
    return ((1 - share_m) * tau_d**2 + share_m * tau_m**2) / (2 * ((1 - share_m) * tau_d + share_m * tau_m))


@formula(unit="prompts", source="Agrawal2024, abstract: new requests join without a pause of what decodes")
def prompts_of_full_passes(T, s, O):
    """Prompts of s tokens for each pass when every pass of T tokens is full: beside them O - 1 decode for each."""
    return T / (s + O - 1)


@formula(unit="requests", source="Kwon2023, sec. 4.5")
def requests_in_pool(D_pool, s, B):
    """Requests of s tokens on average that a pool of D_pool tokens holds; the last block of each is half full."""
    return D_pool / (s + B / 2)


@formula(
    unit="tokens",
    source="Kwon2023, sec. 4.5: who does not fit is sent back and computed again",
    assumes="others wait for a place; the tenth that is left is what our simulation finds",
)
def tokens_computed_again(O):
    """Tokens that are computed again for each answer of O tokens where the cache is full: what an answer frees at
    its end is filled with prompts at once, and those who go on take all but one prompt's place of it back as they
    grow by O tokens.
    """
    return 0.9 * O


@formula(
    unit="seconds",
    source="Kwon2023, sec. 4.5: requests that find no room for a new token are sent back",
    assumes="a request waits for each of its tokens alike, and enters when its prompt fits",
)
def wait_before_token_seconds(tau, s, s_mean):
    """Of the time tau that a request waits for room in the cache, what it waits for its prompt of s tokens; for what
    its answer takes on average, the rest of s_mean tokens, it waits after its first token.
    """
    return tau * s / s_mean


@formula(
    unit="",
    source="vLLM, vllm/lora/worker_manager.py: LRUCacheWorkerLoRAManager",
    assumes="requests ask for all adapters equally often",
)
def cold_share(A, n_copies):
    """Share of the requests whose adapter is not among the A on the accelerator, of n_copies adapters in all."""
    return 1 - A / n_copies


@formula(
    unit="seconds",
    source="Kleinrock1975, ch. 5: Pollaczek-Khinchin",
    assumes="arrivals are a Poisson process; one is served after the other",
)
def queue_wait_seconds(load, tau, cv2):
    """Wait for a server that is busy for the share `load` of the time; a service takes tau, with the squared
    variation cv2.
    """
    return load * tau * (1 + cv2) / (2 * (1 - load))


@formula(unit="", source="Halfin1981, abstract: many servers in heavy traffic", assumes="many places")
def share_that_waits(z_free):
    """Requests that find all places taken; z_free: free places on average, in standard deviations of their number."""
    return 1 / (1 + 2.5066 * z_free * exp(z_free**2 / 2) / (1 + exp(-1.5976 * z_free - 0.07056 * z_free**3)))


@formula(
    unit="seconds",
    source="Halfin1981, abstract: many servers in heavy traffic",
    assumes="lengths vary as cv2 says; arrivals as scv",
)
def place_wait_seconds(share_w, X_max, X, cv2, scv):
    """Wait for a place, where the share share_w waits at all: X arrive a second, and X_max could be served."""
    return share_w * (cv2 + scv) / (2 * maximum(X_max - X, X_max * 1e-6))


@formula(unit="seconds", source="Little1961, L = lambda W", assumes="all come at once")
def burst_wait_seconds(n_pre, tau_m):
    """The mean time of a first token when all come at once and their prompts take n_pre passes of tau_m."""
    return (maximum(n_pre, 1) + 1) / 2 * tau_m


@formula(
    unit="prompts",
    source="Agrawal2024, abstract: chunked prefills",
    assumes="a prompt is cut where the budget of a pass ends",
)
def prompts_of_budget(T, R, s):
    """Prompts of s tokens that a pass of T tokens takes beside R that decode."""
    return maximum(T - R, 1) / s


@formula(
    unit="seconds",
    source="Reiser1980, abstract: mean value analysis",
    assumes="one is served after the other; who comes finds the mean of the others",
)
def closed_queue_seconds(R, tau, tau_away):
    """A stay at a server that takes tau, of each of R who come back tau_away after they have left."""
    return (tau * R - tau_away + ((tau * R - tau_away) ** 2 + 4 * tau * tau_away) ** 0.5) / 2


@formula(
    unit="seconds",
    source="Kleinrock1975, ch. 5: Pollaczek-Khinchin, at departures",
    assumes="arrivals are a Poisson process; services are alike",
)
def work_left_seconds(load, tau):
    """Prompts that wait when one has just been computed: seconds of passes, of tau each."""
    return tau * (load + load**2 / (2 * (1 - load)))


@formula(
    unit="seconds", source="Kleinrock1975, ch. 5: the busy period", assumes="what comes first is done before the end"
)
def stretched_seconds(tau, load):
    """Work of tau, when the share `load` of the time goes to other work that comes meanwhile."""
    return tau / (1 - load)


@formula(unit="", source="Kleinrock1975, ch. 5: residual life", assumes="lengths are uniform")
def drain_share(R, cv2, n_rounds, spread):
    """What a benchmark loses at its end, when fewer and fewer of R requests run, in stays of a request: the longest
    of what is left of them over the mean; n_rounds of requests have parted them by then.
    """
    return minimum(
        (3 * n_rounds * cv2) ** 0.5,
        maximum((1 - (2 * spread * (1 - spread / 2) / (R + 1)) ** 0.5) / (1 - spread / 2) - (1 + cv2) / 2, 0),
    )


@formula(unit="tokens", source="vLLM, vllm/v1/metrics/stats.py: PrefixCacheStats, hits over queries, in tokens")
def prefix_tokens(s, share_hit):
    """Tokens of a prompt of s that a prefix cache has, of whose tokens it has the share share_hit on average."""
    return s * share_hit


@formula(
    unit="prefixes",
    source="vLLM, docs/design/prefix_caching.md: blocks that no request holds stay until their place is needed",
    assumes="running requests share none of their tokens",
)
def prefixes_beside(D_pool, R, s_mean, s_hit):
    """Prefixes of s_hit tokens that stay in a cache of D_pool tokens beside R requests of s_mean tokens."""
    return maximum(D_pool - R * s_mean, 0) / s_hit
