"""The valid sizes nearest to those that were asked for: an error about sizes ends with them."""

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from math import isqrt, log2

from tonnage.kernel.message import joined

EACH_SIDE = 6  # sizes above and below what was asked for that are tried in pairs and triples


def divisors(number: int) -> list[int]:
    """All of them, smallest first.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def near(value: int, valid: Iterable[int]) -> str:
    """The next ones below and above, as a sentence has them; 1 where there is none.

    >>> near(3, [1, 2, 4, 8]), near(16, [1, 2, 4, 8])
    ('2 or 4', '8')
    """
    every = list(valid)
    below = max((n for n in every if n <= value), default=None)
    above = min((n for n in every if n >= value), default=None)
    sizes = [str(n) for n in dict.fromkeys((below, above)) if n is not None]
    return joined(" or ", sizes or ["1"])


def near_divisors(total: int, value: int) -> str:
    return near(value, divisors(total))


def near_multiples(value: int, step: int) -> str:
    below = value // step * step
    return joined(" or ", (str(below), str(below + step))) if below else str(step)


def near_sizes(wanted: Mapping[str, int], among: Iterable[int], holds: Callable[[Mapping[str, int]], bool]) -> str:
    """Of several sizes together the two nearest valid choices, in the order of their names; of one size as `near`;
    empty where none is.

    >>> near_sizes({"t": 3, "p": 2}, divisors(8), lambda sizes: 8 % (sizes["t"] * sizes["p"]) == 0)
    '2 x 2 or 4 x 2'
    """
    every = list(among)
    if len(wanted) == 1:
        [(name, value)] = wanted.items()
        valid = [n for n in every if holds({name: n})]
        return near(value, valid) if valid else ""
    candidates = [
        sizes
        for sizes in product(*(_around(value, every) for value in wanted.values()))
        if holds(dict(zip(wanted, sizes, strict=True)))
    ]

    def distance(sizes: tuple[int, ...]) -> tuple[float, int]:
        away = [abs(log2(size / value)) for size, value in zip(sizes, wanted.values(), strict=True)]
        return round(sum(away), 9), sum(difference > 0 for difference in away)

    return joined(" or ", sorted(" x ".join(map(str, sizes)) for sizes in sorted(candidates, key=distance)[:2]))


def _around(value: int, every: list[int]) -> list[int]:
    """What was asked for first, then its neighbours, and 1, which always divides."""
    below, above = [n for n in every if n < value], [n for n in every if n > value]
    return list(dict.fromkeys([*([value] if value in every else []), *below[-EACH_SIDE:], *above[:EACH_SIDE], 1]))
