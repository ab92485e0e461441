"""Time of an operation on the device: the median over batches of calls that go round several sets of operands."""

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from tonnage.measure.device import Device

BATCH_SECONDS = 0.01  # of one timed batch: far more than the event's resolution of about a microsecond
BATCHES = 5
MAX_CALLS = 500


def seconds_per_call(device: Device, calls: Sequence[Callable[[], Any]]) -> tuple[float, float]:
    """Median and least over the batches. Each of `calls` does the same on operands of its own, so that caches stay
    cold.
    """
    for call in calls[:2]:
        call()
    device.synchronize()
    once = device.seconds(calls[-1]) or 1e-6
    count = max(1, min(math.ceil(BATCH_SECONDS / once), MAX_CALLS))

    def batch() -> None:
        for number in range(count):
            calls[number % len(calls)]()

    taken = [device.seconds(batch) / count for _ in range(BATCHES if once < 1 else 2)]
    return median(taken), min(taken)


def sets(bytes_of_one: int, cache_bytes: int, most: int = 16) -> int:
    """How many sets of operands it takes that none is left in the cache when its turn comes."""
    return max(1, min(most, math.ceil(4 * cache_bytes / max(bytes_of_one, 1)) if bytes_of_one < 4 * cache_bytes else 1))
