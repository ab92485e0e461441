"""Users of whom each sends the next request when an answer ends."""

from tonnage.estimate.load._shape import Shape, between, where
from tonnage.formula import Number, maximum, minimum
from tonnage.formulas.load import burst_wait_seconds, closed_loop_rate, prompts_together, queue_wait_seconds
from tonnage.spec import Load

_NEVER = 1e9


def closed_loop(shape: Shape, load: Load, rounds: Number | None) -> tuple[Number, ...]:
    """(ttft, tpot, requests a second, running, largest rate, share of passes with prompts)."""
    users = shape.places if load.concurrency is None else load.concurrency
    inside = minimum(users, shape.places)
    answer = shape.output - 1
    mixed = shape.policy.mixed
    if mixed:
        most = shape.prompts_at_most(inside * answer / shape.output)
        new = inside / (answer + maximum(1, 1 / most))
        full = shape.budget / (shape.prompt + answer)
        bound = new >= full
        new = minimum(new, full)
        running = new * answer
    else:
        bound = False
        running = inside
        new = inside / maximum(answer, 1)
    most = shape.prompts_at_most(running)
    # how many come together: all of them where lengths are alike, and fewer the more lengths part them
    width = minimum(1, (rounds or _NEVER) ** 0.5 * load.spread)
    burst = between(new, new / maximum(width, 1e-9), inside)
    together = minimum(where(burst >= inside, inside, prompts_together.evaluate(n_new=burst)), most)
    own = minimum(where(burst >= inside, inside, 1 + burst * (1 - 1 / inside)), maximum(most, 1) if mixed else inside)
    decode, prompt = shape.decode(running), shape.prompts(together, running)
    share = where(bound, 1, minimum(new / together, 1))
    if mixed:
        seen = where(bound, 1, share * (1 - minimum(own, inside) / inside))
        tpot = (1 - seen) * decode + seen * prompt
        pace = (1 - share) * decode + share * prompt
        wait = queue_wait_seconds.evaluate(load=minimum(new / most, 1 - 1 / (inside + 1)) * (1 - 1 / inside), tau=pace / most, cv2=0)
        first = maximum(1, 1 / most) * shape.prompts(minimum(own, most), running) + minimum(wait, inside / most * pace / 2)
    else:
        passes = maximum(own / most, 1)
        others = (inside - own) / together + where(own > most, (passes - 1) / 2, 0)
        tpot = decode + others * prompt / maximum(answer, 1)
        first = burst_wait_seconds.evaluate(n_pre=passes, tau_m=shape.prompts(minimum(own, most), running) * maximum(1, 1 / most))
    rate = closed_loop_rate.evaluate(R=inside, tau=first + answer * tpot)
    if mixed:
        rate = minimum(rate, new / ((1 - share) * decode + share * prompt))
    ttft = maximum(first, users / rate - answer * tpot)
    if rounds is not None:
        beside = inside / 2 if mixed else 0 * inside
        all_at_once = shape.prompts_at_most(beside)
        start = burst_wait_seconds.evaluate(n_pre=inside / all_at_once, tau_m=shape.prompts(minimum(all_at_once, inside), beside))
        ttft = ttft + (start * inside + (ttft - first) / 2 * (users - inside) - ttft * users) / (users * rounds)
    return ttft, tpot, rate, running, rate, share
