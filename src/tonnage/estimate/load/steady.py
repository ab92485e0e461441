"""The steady state of a replica under a load in closed form, for one load or for arrays with one entry each: what the
simulation finds on average.

Nothing here loops over loads: unknowns are found in a fixed number of rounds.
"""

from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.load.shape import PassTime, Policy, Shape, between, check_load, where
from tonnage.formulas.load import (
    burst_wait_seconds,
    closed_loop_rate,
    closed_queue_seconds,
    drain_share,
    mean_pass_seconds,
    place_wait_seconds,
    prompts_of_full_passes,
    prompts_per_pass,
    prompts_together,
    queue_wait_seconds,
    requests_inside,
    residual_seconds,
    share_of_prompt_passes,
    share_that_waits,
    stretched_seconds,
    wait_before_token_seconds,
    work_left_seconds,
)
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.formula import Number, exp, maximum, minimum
from tonnage.spec import Load

OUT_OF_STEP = 1e-6  # spread of users whose lengths are alike on average, and who come one by one

# ---- Users of whom each sends the next request when an answer ends.


class Means(Struct, frozen=True, kw_only=True):
    """What both loops find."""

    ttft: Number
    tpot: Number
    rate: Number
    running: Number
    prompt_passes: Number


class Closed(Struct, frozen=True, kw_only=True):
    """Requests inside and their prompts, as they come with each pass. `bound`: passes are full of prompts, and more
    wait.

    `together`: prompts of a pass that has any; `beside`: prompts that come at the same moment as a request's own, with
    it.
    """

    shape: Shape
    inside: Number
    running: Number
    new: Number
    most: Number
    together: Number
    beside: Number
    alike: Number
    bound: Number


def closed_loop(shape: Shape, users: Number, spread: Number, rounds: Number | None) -> Means:
    """`rounds`: requests of each user of a benchmark, None: for ever; more rounds part requests that began together."""
    inside = minimum(users, shape.places)
    shape = shape.under_pressure(users)
    case = _case(shape, inside, spread, rounds)
    first, tpot, pace, share = (_shared if shape.policy.mixed else _alone)(case)
    away = (shape.output - 1) * tpot
    rate = closed_loop_rate.evaluate(R=inside, tau=first + away)
    if shape.policy.mixed:
        rate = where(case.bound, minimum(rate, case.new / pace), rate)
    ttft = maximum(first, users / rate - away)
    if not shape.policy.reserves_answer and shape.policy.pool_tokens is not None:
        # of the cache that a request waits for only its prompt's part comes before its first token
        queued = where((users > shape.places) & (shape.places < shape.policy.max_num_seqs), ttft - first, 0)
        after = queued - wait_before_token_seconds.evaluate(tau=queued, s=shape.input, s_mean=shape.context)
        ttft, tpot = ttft - after, tpot + after / maximum(shape.output - 1, 1)
    if rounds is not None:
        ttft = ttft + (_start(case) * inside + (ttft - first) / 2 * (users - inside) - ttft * users) / (users * rounds)
        lost = drain_share.evaluate(R=inside, cv2=shape.cv2, n_rounds=rounds, spread=spread) * (inside - 1) / inside
        if shape.policy.mixed:  # full passes go on as they are while fewer requests are left
            lost = lost * (1 - case.new / full_passes(shape))
        rate = rate * rounds / (rounds + lost)
    return Means(ttft=ttft, tpot=tpot, rate=rate, running=case.running, prompt_passes=share)


def _case(shape: Shape, inside: Number, spread: Number, rounds: Number | None) -> Closed:
    answer = shape.output - 1
    if shape.policy.mixed:
        most = shape.prompts_at_most(inside * answer / shape.output)
        full = full_passes(shape)
        new = inside / (answer + maximum(1, 1 / most))
        bound = new >= full
        new = minimum(new, full)
        running = new * answer
    else:
        new, running, bound = prompts_per_pass.evaluate(R=inside, O=shape.output), inside, inside < 0
    most = shape.prompts_at_most(running)
    same_length = spread <= 0
    width = 1 if rounds is None else minimum(1, rounds**0.5 * maximum(spread, 1e-6))
    come = minimum(maximum(new, 1e-9) * shape.policy.poll_passes / width, inside)
    together = where(same_length, inside, prompts_together.evaluate(n_new=come))
    beside = where(same_length, inside, 1 + come * (1 - 1 / inside))
    return Closed(
        shape=shape,
        inside=inside,
        running=running,
        new=new,
        most=most,
        together=minimum(together, most),
        beside=minimum(beside, inside),
        alike=same_length,
        bound=bound,
    )


def full_passes(shape: Shape) -> Number:
    """Prompts of a pass when every one is full; a prompt that is not cut has a pass of its own, however long it is."""
    prompts = prompts_of_full_passes.evaluate(T=shape.budget, s=shape.prompt, O=shape.output)
    return prompts if shape.policy.chunked_prefill else maximum(prompts, 1)


def _shared(case: Closed) -> tuple[Number, ...]:
    """(first token, each after it, a pass on average, share of passes with prompts) where prompts and decoding share
    passes.
    """
    shape, inside, most = case.shape, case.inside, case.most
    others = case.running * (1 - 1 / inside)  # that decode beside one that does
    decode, prompt = shape.decode(1 + others), shape.prompts(case.together, 1 + others)
    share = where(case.bound, 1, minimum(case.new / case.together, 1))
    own = minimum(case.beside, maximum(where(case.alike, most // 1, most), 1))
    foreign = where(case.bound, 1, share * (1 - own / inside))  # passes with prompts of others
    tpot = mean_pass_seconds.evaluate(share_m=foreign, tau_d=decode, tau_m=prompt)
    unit = shape.prompts(most, case.running) / most
    away = (shape.output - 1) * tpot
    stay = closed_queue_seconds.evaluate(R=inside, tau=unit, tau_away=away)
    wait = maximum(where(case.alike, 0, (stay - unit) / 2), unit * (inside - 1) - away)
    first = shape.first_token(own, others) + maximum(wait, 0)
    return first, tpot, mean_pass_seconds.evaluate(share_m=share, tau_d=decode, tau_m=prompt), share


def _alone(case: Closed) -> tuple[Number, ...]:
    """The same where decoding waits for prompts."""
    shape, inside, most = case.shape, case.inside, case.most
    decode, prompt = shape.decode(case.running), shape.prompts(case.together, case.running)
    cuts = maximum(1, 1 / most)
    passes = maximum(case.beside / maximum(most, 1), 1)  # with prompts that came together
    others = (inside - case.beside) / case.together + (passes - 1) / 2 * cuts
    tpot = decode + others * prompt / maximum(shape.output - 1, 1)
    first = burst_wait_seconds.evaluate(
        n_pre=passes, tau_m=shape.first_token(minimum(case.beside, maximum(most, 1)), case.running)
    )
    share = case.new / (case.new + case.together)
    return first, tpot, mean_pass_seconds.evaluate(share_m=share, tau_d=decode, tau_m=prompt), share


def _start(case: Closed) -> Number:
    """The mean first token of a benchmark's first requests, which all come at once."""
    shape, inside = case.shape, case.inside
    running = case.running / 2
    most = shape.prompts_at_most(running)
    return burst_wait_seconds.evaluate(
        n_pre=inside / maximum(most, 1),
        tau_m=shape.first_token(minimum(maximum(most, 1), inside), where(inside > most, running, 0)),
    )


# ---- Requests that arrive by themselves.

_ROUNDS = 6
_BUSIEST = 0.999


class Moment(Struct, frozen=True, kw_only=True):
    """Passes while so many requests decode. `most`: prompts that one takes at most; `unit`: seconds of a prompt where
    passes are full of them;
    `busy`: share of the time that all prompts would take so."""

    tpot: Number
    decode: Number
    prompt: Number
    share: Number
    most: Number
    unit: Number
    busy: Number


def open_loop(shape: Shape, arriving: Number, burstiness: Number, full: Means) -> Means:
    """`full`: the same replica with all places taken: no more are answered, and no token takes longer."""
    stable = arriving < full.rate
    rate = minimum(arriving, full.rate)
    decode, slope = _balance(shape, rate, full)
    running = minimum(requests_inside.evaluate(X=rate, tau=(shape.output - 1) * decode.tpot), shape.places)
    # a long pass is met more often than a short one, and more prompts come with it
    residual = residual_seconds.evaluate(share_m=decode.share, tau_d=decode.decode, tau_m=decode.prompt)
    with_it = minimum(1 + 2 * rate * residual, maximum(decode.most, 1))
    own = shape.first_token(with_it, running)
    inside = running + requests_inside.evaluate(X=rate, tau=own)
    some = 1 - exp(-inside)  # somebody is there, so that a pass runs
    wait = queue_wait_seconds.evaluate(load=decode.busy, tau=decode.unit, cv2=burstiness - 1)
    free = maximum((shape.places - 0.5 - inside) / maximum(inside * (1 + shape.cv2) / (1 - slope), 1e-9) ** 0.5, 0)
    share_waiting = share_that_waits.evaluate(z_free=free)
    place = place_wait_seconds.evaluate(share_w=share_waiting, X_max=full.rate, X=rate, cv2=shape.cv2, scv=burstiness)
    ttft = where(stable, some * residual + own + maximum(wait, place), float("inf"))
    return Means(ttft=ttft, tpot=decode.tpot, rate=rate, running=running, prompt_passes=decode.share)


def _balance(shape: Shape, rate: Number, full: Means) -> tuple[Moment, Number]:
    """The time of a token at which as many requests decode as make it that long, and how much it grows with itself
    there.
    """
    before = shape.decode(1 + 0 * rate)
    now = image = _at(shape, rate, before).tpot
    slope = 0 * before
    decodes = hasattr(shape.output, "ndim") or shape.output > 1  # else nothing depends on how long a token takes
    for _ in range(_ROUNDS if decodes else 0):
        stretched = _at(shape, rate, now)
        step = now - before
        moves = abs(step) > 1e-9 * now
        slope = between(0, where(moves, (stretched.tpot - image) / where(moves, step, 1), slope), 0.95)
        before, image = now, stretched.tpot
        now = between(before / 4, now + (stretched.tpot - now) / (1 - slope), maximum(full.tpot, before / 4))
    stretched = _at(shape, rate, now)
    return replace(stretched, tpot=minimum(stretched.tpot, maximum(full.tpot, stretched.decode))), slope


def _at(shape: Shape, rate: Number, tpot: Number) -> Moment:
    """What the passes are like, and the time of a token that comes of them, while tokens take `tpot`.

    The mean over answers, not over passes: an answer that is short beside the time in which prompts queue sees either
    one or the other.
    """
    answer = shape.output - 1
    running = minimum(rate * answer * tpot, shape.places)
    seen = minimum(running + 1, shape.places)  # whoever is there sees the others and itself
    decode, most = shape.decode(seen), shape.prompts_at_most(running)
    unit = shape.prompts(most, running) / most
    prompt = shape.prompts(minimum(maximum(rate * decode, 1), most), seen)
    for _ in range(2):
        share = share_of_prompt_passes.evaluate(X=rate, tau_d=decode, tau_m=prompt)
        mean = mean_pass_seconds.evaluate(share_m=share, tau_d=decode, tau_m=prompt)
        together = between(1e-9, rate * mean / maximum(share, 1e-12), most)
        prompt = shape.prompts(together, seen)
    busy = minimum(rate * prompt / together, _BUSIEST)  # share of the time for prompts
    left = work_left_seconds.evaluate(load=minimum(rate * unit, _BUSIEST), tau=unit)
    lost = maximum(1 - decode / prompt, 0) if shape.policy.mixed else 1  # share of that time in which nothing decodes
    stretched = stretched_seconds.evaluate(tau=decode, load=busy * lost)
    more = stretched_seconds.evaluate(tau=left * lost, load=busy * lost) / maximum(answer, 1)
    if shape.policy.mixed:  # an answer that ends while prompts still wait has seen no other passes
        most_more = maximum((1 - busy) * decode + busy * prompt - stretched, 1e-12)
        more = more * most_more / (more + most_more)
    stretched = stretched + more
    share = busy / prompt / (busy / prompt + (1 - busy) / decode)
    return Moment(
        tpot=stretched,
        decode=decode,
        prompt=prompt,
        share=share,
        most=most,
        unit=unit,
        busy=minimum(rate * unit, _BUSIEST),
    )


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


def full_load(shape: Shape) -> Means:
    """The state with all places taken: the same for every number of users and every rate of requests. InvalidPlan
    where the cache holds no request.
    """
    if shape.fits is False:
        raise InvalidPlan(
            "a request needs {input_tokens:,} + {output_tokens:,} tokens of cache; the replica holds "
            "{pool_tokens:,} (pool_tokens).",
            input_tokens=shape.load.input_tokens,
            output_tokens=shape.load.output_tokens,
            pool_tokens=shape.policy.pool_tokens,
        )
    return closed_loop(shape, shape.places, 1 + 0 * shape.places, None)


def steady(
    pass_time: PassTime,
    policy: Policy,
    load: Load,
    *,
    rounds: Number | None = None,
    tokens_each: Number = 1,
    full: Means | None = None,
) -> Steady:
    """The steady state. `rounds`: requests that each user of a benchmark sends, the first of all at once
    (InferenceMAX: 10), which is in its mean TTFT; None: it goes on for ever. `tokens_each`: tokens that a pass gives
    each request, more than one with drafts; `tpot` here is the time between two passes. `full`: what `full_load` found.
    """
    check_load(load)
    shape = Shape(pass_time, policy, load, tokens_each)
    full = full or full_load(shape)
    if load.requests_per_second is not None:
        state = open_loop(shape, load.requests_per_second, load.burstiness, full)
    else:
        users = shape.places if load.concurrency is None else load.concurrency
        spread = load.spread if load.in_step else maximum(load.spread, OUT_OF_STEP)
        state = closed_loop(shape, users, spread, rounds)
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
