"""Requests that a replica is asked to answer: lengths and arrivals, drawn or read."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tonnage.estimate.load.check import check_load
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.formula import Number
from tonnage.spec import Load

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]


class Requests(Struct, frozen=True, kw_only=True, eq=False):
    """Requests in the order in which they come: arrays with one entry each.

    `users`: how many there are who send the next one when an answer ends; None: each comes at its second of `arrival`.
    `cached`: tokens of each prompt that the engine has already; they take their place in the cache like the others.
    `note`: how a file was read.
    """

    arrival: "Numbers"
    input_tokens: "Numbers"
    output_tokens: "Numbers"
    cached: "Numbers"
    users: int | None = None
    note: str = ""

    def __len__(self) -> int:
        return len(self.input_tokens)


def requests_of(load: Load, count: int | None = None, seed: int = 0) -> Requests:
    """Requests as a benchmark client draws them: `count`, ten for each user if not given, as InferenceMAX does (10
    000 where they arrive by themselves). The same seed draws the same requests.
    """
    import numpy as np

    check_load(load)
    generator = np.random.default_rng(seed)
    if (load.concurrency is None) == (load.requests_per_second is None):
        raise InvalidInput(
            "a simulation needs either concurrency or requests_per_second. Got {concurrency} and "
            "{requests_per_second}.",
            concurrency=load.concurrency,
            requests_per_second=load.requests_per_second,
        )
    users = None if load.concurrency is None else int(load.concurrency)
    total = count or (10 * users if users else 10_000)
    prompts = uniform_lengths(generator, int(load.input_tokens), load.spread, total)
    return Requests(
        arrival=np.zeros(total)
        if users
        else gamma_arrivals(generator, load.requests_per_second, load.burstiness, total),
        input_tokens=prompts,
        output_tokens=uniform_lengths(generator, int(load.output_tokens), load.spread, total),
        cached=np.minimum(
            int(load.cached_tokens), prompts - 1
        ),  # the last token is computed in any case: it makes the first of the answer
        users=users,
    )


def uniform_lengths(generator: "np.random.Generator", longest: int, spread: float, count: int) -> "Numbers":
    """Whole numbers from (1 - spread) of the longest to the longest, at least 1."""
    return generator.integers(max(round(longest * (1 - spread)), 1), longest, count, endpoint=True)


def lognormal_lengths(generator: "np.random.Generator", mean: float, cv: float, count: int) -> "Numbers":
    """Whole numbers of this mean whose standard deviation is `cv` of it; as what people write, few are much longer
    than most.
    """
    import numpy as np

    variance = np.log1p(cv * cv)
    drawn = generator.lognormal(np.log(mean) - variance / 2, np.sqrt(variance), count)
    return np.maximum(np.rint(drawn), 1).astype(int)


def gamma_arrivals(generator: "np.random.Generator", rate: Number, burstiness: float, count: int) -> "Numbers":
    """Seconds of arrivals whose gaps have a mean of 1 / rate and a squared coefficient of variation of `burstiness`;
    0: evenly spaced.
    """
    import numpy as np

    if burstiness == 0:
        return np.arange(count) / rate
    return np.cumsum(generator.gamma(1 / burstiness, burstiness / rate, count))
