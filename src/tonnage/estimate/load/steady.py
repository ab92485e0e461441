"""The steady state of a replica under a load in closed form, for one load or for arrays with one entry each: what the
simulation finds on average.

Nothing here loops over loads: unknowns are found in a fixed number of rounds.
"""

from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.load.check import check_load
from tonnage.estimate.load.closed import closed_loop
from tonnage.estimate.load.open_arrivals import open_loop
from tonnage.estimate.load.passes import PassTime
from tonnage.estimate.load.policy import Policy
from tonnage.estimate.load.shape import Shape, where
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.formula import Number
from tonnage.spec import Load


class Steady(Struct, frozen=True, kw_only=True):
    """Means. `running`: requests that decode; `places`: that run at once at most, of the engine's limit and of the
    cache.

    `largest_rate`: requests a second that the replica can answer; where more arrive `ttft` is infinite: the queue grows
    without end.
    `prompt_passes`: share of passes that have prompts. Where the cache fills up and nothing is reserved, the engine
    sends requests back, and part of what is `ttft` here is waited after the first token: simulate that. Where one of
    several loads does not fit the cache, its rate is 0.
    """

    ttft: Number
    tpot: Number
    requests_per_second: Number
    output_tokens_per_second: Number
    running: Number
    places: Number
    largest_rate: Number
    prompt_passes: Number


def steady(
    pass_time: PassTime, policy: Policy, load: Load, *, rounds: Number | None = None, tokens_each: Number = 1
) -> Steady:
    """The steady state. `rounds`: requests that each user of a benchmark sends, the first of all at once
    (InferenceMAX: 10), which is in its mean TTFT; None: it goes on for ever. `tokens_each`: tokens that a pass gives
    each request, more than one with drafts; `tpot` here is the time between two passes.
    """
    check_load(load)
    shape = Shape(pass_time, policy, load, tokens_each)
    if shape.fits is False:
        raise InvalidPlan(
            "a request needs {input_tokens:,} + {output_tokens:,} tokens of cache; the replica holds "
            "{pool_tokens:,} (pool_tokens).",
            input_tokens=load.input_tokens,
            output_tokens=load.output_tokens,
            pool_tokens=policy.pool_tokens,
        )
    full = closed_loop(shape, shape.places, 1 + 0 * shape.places, None)
    if load.requests_per_second is not None:
        state = open_loop(shape, load.requests_per_second, load.burstiness, full)
    else:
        users = shape.places if load.concurrency is None else load.concurrency
        state = closed_loop(shape, users, load.spread, rounds)
    if shape.fits is not True:
        state = replace(state, ttft=where(shape.fits, state.ttft, float("inf")), rate=where(shape.fits, state.rate, 0))
        full = replace(full, rate=where(shape.fits, full.rate, 0))
    rate = plain(state.rate)
    return Steady(
        ttft=plain(state.ttft),
        tpot=plain(state.tpot),
        requests_per_second=rate,
        output_tokens_per_second=rate * shape.answer,
        running=plain(state.running),
        places=plain(shape.places),
        largest_rate=plain(full.rate),
        prompt_passes=plain(state.prompt_passes),
    )


def plain(value: Number) -> Number:
    """A number of Python's where numpy made one of a single load."""
    return value if getattr(value, "ndim", 0) else float(value)
