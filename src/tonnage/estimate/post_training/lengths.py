"""Lengths of the completions of a step, and how they fill micro-batches."""

from bisect import bisect_right, insort
from functools import lru_cache
from math import gamma
from typing import TYPE_CHECKING, Any

from tonnage.spec import Rollout

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]

MOST = 4096  # lengths that are drawn: those of larger steps lie between them
HALVINGS = 80
STEEPEST, FLATTEST = 0.2, 20.0  # shapes of Weibull's distribution; their variations are 16 and 0.06


def completions(rollout: Rollout, count: int) -> "Numbers":
    """Tokens of `count` completions, in ascending order: quantiles of Weibull's distribution, cut at the maximum, of
    the stated mean after the cut. With a variation of 1 that is the exponential distribution: each token ends its
    completion with the same probability.
    """
    import numpy as np

    mean, longest = float(rollout.mean_completion_length), float(rollout.max_completion_length)
    if mean >= longest or not rollout.completion_spread:
        return np.full(count, round(mean), dtype=int)
    return np.array(_quantiles(mean, longest, rollout.completion_spread, count), dtype=int)


@lru_cache(maxsize=64)
def _quantiles(mean: float, longest: float, spread: float, count: int) -> tuple[int, ...]:
    import numpy as np

    places = (np.arange(count) + 0.5) / count
    unscaled = (-np.log1p(-places)) ** (1 / _shape(spread))
    low, high = 0.0, 1.0
    while np.minimum(high * unscaled, longest).mean() < mean:
        high *= 2
        if high > longest * 1e9:  # a mean that only the longest have
            break
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * unscaled, longest).mean() < mean else (low, middle)
    lengths = np.maximum(np.rint(np.minimum(high * unscaled, longest)), 1).astype(int)
    return tuple(lengths.tolist())


@lru_cache(maxsize=64)
def _shape(spread: float) -> float:
    """The shape of Weibull's distribution whose standard deviation is `spread` of its mean."""
    low, high = STEEPEST, FLATTEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        first, second = gamma(1 + 1 / middle), gamma(1 + 2 / middle)
        low, high = (middle, high) if second / first**2 - 1 > spread**2 else (low, middle)
    return (low + high) / 2


def packed(tokens: "Numbers", room: int) -> int:
    """Micro-batches of at most `room` tokens that hold all these sequences: the fullest that has room takes the next
    longest (NeMo RL, nemo_rl/data/packing: first-fit decreasing).
    """
    free: list[int] = []
    for length in sorted(tokens.tolist(), reverse=True):
        place = bisect_right(free, length - 1)
        left = free.pop(place) - length if place < len(free) else room - length
        insort(free, max(left, 0))
    return len(free)
