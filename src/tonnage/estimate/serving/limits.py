"""What a replica holds at most: the longest context of one request, and the most requests at the same time.

`serve`, `serve --for-my-machine` and the tests of `max` share these. Two answers stand side by side: by the estimate,
where what is needed is at most what is usable, and at the high end of the error band, where measured runs of the same
kind fit too.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import ceil, floor

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.bands import serving_band, serving_highest
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import ServingMemory, serving_needed
from tonnage.formulas import serving as g
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.term import Term
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan

# ---- The last of ordered values that is not over: bracketed by doubling, then found along the straight line between,
# and by halving.

Over = Callable[[int], float]  # of a value: how much it is over, infinite where it is refused; 0 and below holds
NEAR = 64  # values around a guess: engines round up to whole blocks
BEYOND, FURTHER = (
    8,
    tuple(1 + step / 16 for step in range(1, 17)),
)  # values after the first that is over, and times its place


def largest(values: Sequence[int], over: Over, *, look_beyond: bool = True) -> int | None:
    """The place of the last value that holds, such that the next one does not; None where none does.

    Memory grows with what is looked for, but for a few rules that cut work into more and smaller parts: so values
    beyond the first that is over are tried too, unless `look_beyond` is off.

    >>> largest(range(0, 100, 5), lambda value: value - 42)
    8
    """
    if over(values[0]) > 0:
        return None
    low = _last_before(values, over, 0)
    while look_beyond and (again := _holds_again(values, over, low)) is not None:
        low = _last_before(values, over, again)
    return low


def _last_before(values: Sequence[int], over: Over, low: int) -> int:
    """From a place that holds to the last before one that does not."""
    last = len(values) - 1
    high = min(low + 1, last + 1)
    while high <= last and over(values[high]) <= 0:
        ahead = _crossing(values, over, low, high) or 0
        low, high = high, min(max(high + 4 * (high - low), ahead + NEAR), last + 1)
    halve = False
    while high - low > 1:
        place = None if halve or high > last else _crossing(values, over, low, high)
        if place is None:
            low, high = _split((low + high) // 2, low, high, values, over)
        else:
            for near in (place, place + 1, place - NEAR, place + NEAR):
                if low < near < high:
                    low, high = _split(near, low, high, values, over)
        halve = not halve
    return low


def _split(at: int, low: int, high: int, values: Sequence[int], over: Over) -> tuple[int, int]:
    return (at, high) if over(values[at]) <= 0 else (low, at)


def _crossing(values: Sequence[int], over: Over, low: int, high: int) -> int | None:
    """Where the straight line through two places crosses zero; None where it never does, or one is no number."""
    below, above = over(values[low]), over(values[high])
    if not below < above < float("inf"):
        return None
    return int(low + (high - low) * -below / (above - below))


def _holds_again(values: Sequence[int], over: Over, low: int) -> int | None:
    """A place beyond that holds although the next one does not."""
    first, last = low + 2, len(values) - 1
    near = range(first, min(first + BEYOND, last + 1))
    far = (int(first * factor) for factor in FURTHER)
    return next((place for place in (*near, *far) if low + 1 < place <= last and over(values[place]) <= 0), None)


LONGEST = 2**30  # tokens: longer than any model was made for
MAX_REQUESTS = 2**24  # requests: more than any machine holds
REFUSED = float("inf")


def longest_context(model: Model, plan: ServingPlan, cluster: Cluster, memory: ServingMemory, usable: int) -> Term:
    """Tokens of the longest request that fits alone at the high end of the error band, as a term."""
    tokens = longest_context_tokens(model, plan, cluster, memory, usable)
    why = "what the model was made for" if tokens == (model.context or LONGEST) else "the accelerator's memory"
    return Term.by(
        "longest context of one request",
        tokens,
        "tokens",
        basis=memory.memory.basis,
        source="Kwon2023, sec. 4.2",
        version="1",
        procedure="bisection over contexts (estimate.serving_limits)",
        limit=why,
    )


def made_for(model: Model, plan: ServingPlan) -> int:
    """The tokens that a model was made for, where the context of a plan is longer; 0 where it is not."""
    return model.context if model.context and plan.context > model.context else 0


def refused_by(model: Model, plan: ServingPlan) -> str:
    """The engine, where it does not start with a context beyond the model's own."""
    return plan.engine if made_for(model, plan) and serving_runtime(plan.engine, plan.engine_version).longer else ""


def longest_context_tokens(
    model: Model, plan: ServingPlan, cluster: Cluster, memory: ServingMemory, usable: int
) -> int:
    """Tokens of the longest request that fits alone at the high end of the error band, at most those that the model
    was made for; one token more does not fit. `memory`: that of `plan`, from which the search starts; 0 where
    none fits.
    """
    most = model.context or LONGEST
    if serving_highest(plan.engine, cluster.accelerator, memory.memory.value) <= usable and plan.context >= most:
        return most
    slope = max(rank.per_token.value for rank in memory.ranks)
    alone = memory.memory.value - (plan.concurrency - 1) * memory.fullest.per_request.value
    band = serving_band(plan.engine, cluster.accelerator)
    room = usable / band.high if band else usable
    guess = floor(plan.context - (alone - room) / slope) if slope else most
    return _longest(ByIdentity(model), replace(plan, concurrency=1), ByIdentity(cluster), usable, most, guess)


@lru_cache(maxsize=256)
def _longest(model: ByIdentity, plan: ServingPlan, cluster: ByIdentity, usable: int, most: int, guess: int) -> int:
    """The last context that fits, 0 where none does: first near the guess, along the straight line of what a token
    adds.
    """

    @cache
    def over(context: int) -> float:
        return _over(model.thing, replace(plan, context=context), cluster.thing, usable, safe=True)

    if guess < 1 and over(1) > 0:  # most often the weights alone are too much
        return 0
    if any(limit.up_to_context for limit in serving_runtime(plan.engine, plan.engine_version).limits):
        contexts = range(1, most + 1)  # smaller passes of long contexts: what fits again beyond is looked for
        place = largest(contexts, over)
        return 0 if place is None else contexts[place]
    low, high = 0, most + 1
    for near in (guess - NEAR, guess + NEAR, most):
        if low < near < high:
            low, high = (near, high) if over(near) <= 0 else (low, near)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if over(middle) <= 0 else (low, middle)
    return low


def most_requests(
    model: Model, plan: ServingPlan, cluster: Cluster, memory: ServingMemory, usable: int, *, safe: bool = False
) -> int:
    """Requests that each group of ranks of a replica holds at once, each of the whole context; one more does not fit,
    or the engine lets it wait.
    `safe`: at the high end of the error band, else by the estimate."""
    band = serving_band(plan.engine, cluster.accelerator) if safe else None
    room = usable / band.high if band else usable
    guess = min(
        max(room - rank.besides_cache.value, 0) // rank.per_request.value
        for rank in memory.ranks
        if rank.per_request.value
    )
    return _most(ByIdentity(model), replace(plan, concurrency=1), ByIdentity(cluster), usable, int(guess), safe)


@lru_cache(maxsize=512)
def _most(model: ByIdentity, plan: ServingPlan, cluster: ByIdentity, usable: int, guess: int, safe: bool) -> int:
    """The last number that fits: the guess, which holds where requests need nothing but their cache, else by a
    search.
    """
    groups = plan.attention_data_parallel_size
    engine = serving_runtime(plan.engine, plan.engine_version)
    accelerator = cluster.thing.accelerator

    @cache
    def over(requests: int) -> float:
        candidate = replace(plan, concurrency=requests * groups)
        if engine.queues and requests > batch_limits(engine, candidate, accelerator).requests:
            return REFUSED
        return _over(model.thing, candidate, cluster.thing, usable, safe=safe)

    if engine.queues:
        guess = min(guess, batch_limits(engine, replace(plan, concurrency=guess * groups or 1), accelerator).requests)
    if (guess == 0 or over(guess) <= 0) and over(guess + 1) > 0:
        return guess
    numbers = range(1, MAX_REQUESTS + 1)
    place = largest(numbers, over, look_beyond=False)
    return 0 if place is None else numbers[place]


def _over(model: Model, plan: ServingPlan, cluster: Cluster, usable: int, *, safe: bool) -> float:
    """Bytes that a plan needs beyond what is usable; infinite where the engine refuses it."""
    try:
        needed = serving_needed(model, plan, cluster.accelerator)
    except TonnageError:
        return REFUSED
    return (serving_highest(plan.engine, cluster.accelerator, needed) if safe else ceil(needed)) - usable


def request_figures(
    model: Model, plan: ServingPlan, cluster: Cluster, memory: ServingMemory, usable: int, copies: int
) -> dict[str, Term]:
    """How many requests, and tokens of cache, fit beside everything else, of all `copies` of a replica.
    `safe_concurrency` where an error band is known.
    """
    held = [rank for rank in memory.ranks if rank.per_request.value]
    if not held:
        return {}
    pools = [
        (Term.of("room for the cache", g.cache_pool_bytes, U=usable, M=rank.besides_cache.value), rank) for rank in held
    ]
    pool, rank = min(pools, key=lambda pair: pair[0].value / pair[1].per_request.value)
    size = rank.per_request.value
    replicas = Term.of("replicas", g.replicas, n_copies=copies * plan.attention_data_parallel_size)
    engine = serving_runtime(plan.engine, plan.engine_version)
    count = most_requests(model, plan, cluster, memory, usable)
    of_replica = Term.of(
        "concurrent requests of one replica",
        g.concurrency,
        U=pool.value,
        M=size,
        R=memory.limits.requests if engine.queues else MAX_REQUESTS,
    )
    room = pool.value
    if of_replica.value != count:  # requests need more than their cache, or the pool shrinks with them
        of_replica, room = _by_search("concurrent requests of one replica", count, memory), count * size
    figures = {"concurrency": Term.product("concurrent requests", "requests", replicas, of_replica)}
    if serving_band(plan.engine, cluster.accelerator):
        safe = most_requests(model, plan, cluster, memory, usable, safe=True)
        one = _by_search("concurrent requests of one replica", safe, memory)
        name = "concurrent requests at the high end of the error band"
        figures["safe_concurrency"] = Term.product(name, "requests", replicas, one)
    if any(rank.per_token.value for rank in memory.ranks):
        tokens = Term.of("tokens of cache of one replica", g.pool_tokens, U=room, M=size, s=plan.context)
        figures["kv_capacity_tokens"] = Term.product("tokens of cache", "tokens", replicas, tokens)
    return figures


def _by_search(name: str, count: int, memory: ServingMemory) -> Term:
    return Term.by(
        name,
        count,
        "requests",
        basis=memory.memory.basis,
        source="Kwon2023, sec. 4.2",
        version="1",
        procedure="search over numbers of requests (estimate.serving_limits)",
        limit="the accelerator's memory",
    )
