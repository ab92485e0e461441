"""Users of whom each sends the next request when an answer ends."""

from msgspec import Struct

from tonnage.estimate.load.shape import Shape, where
from tonnage.formulas.load import (
    burst_wait_seconds,
    closed_loop_rate,
    closed_queue_seconds,
    drain_share,
    mean_pass_seconds,
    prompts_of_full_passes,
    prompts_per_pass,
    prompts_together,
)
from tonnage.kernel.formula import Number, maximum, minimum


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
    come = minimum(maximum(new, 1e-9) / width, inside)
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
