"""Requests that arrive by themselves."""

from tonnage.estimate.load._closed import closed_loop
from tonnage.estimate.load._shape import Shape, between, where
from tonnage.formula import Number, exp, maximum, minimum
from tonnage.formulas.load import (
    mean_pass_seconds,
    place_wait_seconds,
    queue_wait_seconds,
    requests_inside,
    residual_seconds,
    share_of_prompt_passes,
    share_that_waits,
)
from tonnage.spec import Load

_ROUNDS = 8


def open_loop(shape: Shape, load: Load) -> tuple[Number, ...]:
    """(ttft, tpot, requests a second, running, largest rate, share of passes with prompts)."""
    arriving = load.requests_per_second
    answer = shape.output - 1
    largest = largest_rate(shape, load)
    stable = arriving < largest
    rate = minimum(arriving, largest)
    mixed = shape.policy.mixed

    def at(tpot):
        running = minimum(rate * answer * tpot, shape.places)
        seen = minimum(running + 1, shape.places)
        decode = shape.decode(seen)
        most = shape.prompts_at_most(running)
        together = minimum(maximum(rate * decode, 1), most)
        for _ in range(2):
            prompt = shape.prompts(together, seen)
            share = share_of_prompt_passes.evaluate(X=rate, tau_d=decode, tau_m=prompt)
            if mixed:
                share = between(rate * mean_pass_seconds.evaluate(share_m=share, tau_d=decode, tau_m=prompt) / most, share, 1)
                each = mean_pass_seconds.evaluate(share_m=share, tau_d=decode, tau_m=prompt)
                together = minimum(rate * each / share, most)
            else:
                share = minimum(share, 0.999)
                each = decode + share / (1 - share) * prompt
                together = minimum(rate * each * (1 - share) / share, most)
                share = rate * each / together
                share = share / (1 + share)
        if not mixed:
            each = decode + rate * each / together * shape.prompts(together, seen)
        return each, decode, prompt, share, most

    low = shape.decode(1 + 0 * rate)
    before, image = low, at(low)[0]
    slope = 0 * low
    now = image
    for _ in range(_ROUNDS):
        result = at(now)
        step = now - before
        moved = where(abs(step) > 1e-12 * now, result[0] - image, 0)
        slope = between(0, where(abs(step) > 1e-12 * now, moved / where(abs(step) > 1e-12 * now, step, 1), slope), 0.98)
        before, image = now, result[0]
        now = maximum(now + (result[0] - now) / (1 - slope), low)
    tpot, decode, prompt, share, most = at(now)
    running = minimum(requests_inside.evaluate(X=rate, tau=answer * tpot), shape.places)
    arrive_with = minimum(1 + rate * (share * prompt**2 + (1 - share) * decode**2) / mean_pass_seconds.evaluate(share_m=share, tau_d=decode, tau_m=prompt), maximum(most, 1))
    own = maximum(1, 1 / most) * shape.prompts(minimum(arrive_with, most), running)
    inside = running + rate * own
    busy = 1 - exp(-inside)
    unit = shape.prompts(most, running) / most
    used = minimum(rate * unit, 0.999)
    wait = queue_wait_seconds.evaluate(load=used, tau=unit, cv2=load.burstiness - 1)
    free = maximum((shape.places - inside) / maximum(inside / (1 - slope), 1e-9) ** 0.5, 0)
    place = place_wait_seconds.evaluate(share_w=share_that_waits.evaluate(z_free=free), X_max=largest, X=rate, cv2=shape.cv2, scv=load.burstiness)
    ttft = busy * residual_seconds.evaluate(share_m=share, tau_d=decode, tau_m=prompt) + own + wait + place
    return where(stable, ttft, float("inf")), tpot, rate, running, largest, share


def largest_rate(shape: Shape, load: Load) -> Number:
    """Requests a second when all places are always taken."""
    from msgspec.structs import replace

    return closed_loop(shape, replace(load, concurrency=None, requests_per_second=None, spread=maximum(load.spread, 1)), None)[2]
