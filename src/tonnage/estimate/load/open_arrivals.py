"""Requests that arrive by themselves."""

from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.load.closed import Means
from tonnage.estimate.load.shape import Shape, between, where
from tonnage.formulas.load import (
    mean_pass_seconds,
    place_wait_seconds,
    queue_wait_seconds,
    requests_inside,
    residual_seconds,
    share_of_prompt_passes,
    share_that_waits,
    stretched_seconds,
    work_left_seconds,
)
from tonnage.kernel.formula import Number, exp, maximum, minimum

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
    for _ in range(_ROUNDS):
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
