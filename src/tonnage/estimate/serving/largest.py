"""The last of ordered values that is not over: bracketed by doubling, then found along the straight line between,
and by halving.
"""

from collections.abc import Callable, Sequence

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
