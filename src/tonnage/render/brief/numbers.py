"""Numbers of the short text: three significant digits, GiB with one decimal, money in cents, parts that add up."""

from collections.abc import Iterable, Sequence

from tonnage.kernel.units import YEAR, money, significant
from tonnage.language import say

GIB, MILLION = 1 << 30, 10**6
# Seconds of a unit, and from how many seconds on it is used.
UNITS = (
    (float(YEAR), "years", 2.0 * YEAR),
    (86400.0, "d", 172800.0),
    (3600.0, "h", 7200.0),
    (60.0, "min", 600.0),
    (1.0, "s", 1.0),
    (1e-3, "ms", 1e-3),
)
SHORTEST = (1e-6, "us")


def gib(size: float) -> str:
    """Bytes as GiB with one decimal, without the unit.

    >>> gib(147626839582)
    '137.5'
    """
    return f"{size / GIB:,.1f}"


def count(value: float) -> str:
    """A whole number with separators."""
    return f"{value:,.0f}"


def many(value: float) -> str:
    """A number of tokens: exact below a million, then with M, B or T.

    >>> many(366033), many(1318494), many(15e12)
    ('366,033', '1.32 M', '15.0 T')
    """
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if value >= size:
            return f"{significant(value / size)} {letter}"
    return count(value)


def seconds_unit(value: float) -> tuple[float, str]:
    """Seconds of the unit that a time is written in, and its symbol."""
    return next(((size, unit) for size, unit, least in UNITS if value >= least), SHORTEST)


def seconds(value: float) -> str:
    """A time with its unit.

    >>> seconds(0.3787), seconds(5.2), seconds(1080), seconds(90000), seconds(1.6e13)
    ('379 ms', '5.20 s', '18.0 min', '25.0 h', '507,000 years')
    """
    size, unit = seconds_unit(value)
    return f"{significant(value / size)} {say(unit)}"


def seconds_column(values: Sequence[float | None], digits: int = 3) -> list[str]:
    """Times of a column in one unit: that of the longest, or of the shortest where it is below a tenth of that; "-"
    where a time is not known.

    >>> seconds_column([0.9, 4.19, None]), seconds_column([0.021, 4.19])
    (['0.900 s', '4.19 s', '-'], ['21.0 ms', '4,190 ms'])
    """
    unit = column_unit(values)
    return ["-" if value is None else in_unit(value, unit, digits) for value in values]


def column_unit(values: Iterable[float | None]) -> tuple[float, str]:
    """Seconds of the unit that the times of a column are written in, and its symbol."""
    known = [value for value in values if value]
    size, unit = seconds_unit(max(known, default=1.0))
    return seconds_unit(min(known)) if known and min(known) < size / 10 else (size, unit)


def in_unit(value: float, unit: tuple[float, str], digits: int = 3) -> str:
    """A time in a given unit."""
    size, symbol = unit
    return f"{significant(value / size, digits)} {say(symbol)}"


def money_column(values: Sequence[float | None]) -> list[str]:
    """Amounts of a column in one unit: millions where all are at least one, else whole USD; "-" where none is known.

    >>> money_column([84992, 1200000]), money_column([2.4e6, 12e6]), money_column([0.083, None])
    (['84,992', '1,200,000'], ['2.40 M', '12.0 M'], ['0.083', '-'])
    """
    known = [value for value in values if value is not None]
    mixed = any(value >= MILLION for value in known) and any(value < MILLION for value in known)
    return ["-" if value is None else count(value) if mixed else money(value) for value in values]


def target(value: float) -> str:
    """A time as it was asked for: 300 ms, 1 s."""
    size, unit = seconds_unit(value)
    return f"{value / size:g} {say(unit)}"


def with_band(value: float, band: Sequence[float] | None) -> str:
    """A time with its error band in the same unit.

    >>> with_band(0.3787, (0.2008, 1.16))
    '379 ms (201 to 1,160)'
    """
    if not band:
        return seconds(value)
    return say("{value} ({ends})", value=seconds(value), ends=band_ends(value, band))


def band_ends(value: float, band: Sequence[float]) -> str:
    """The ends of an error band in the unit of its figure, without it."""
    size, _ = seconds_unit(value)
    return say("{low} to {high}", low=significant(band[0] / size), high=significant(band[1] / size))


def seconds_change(before: float, after: float) -> str:
    """Two times, the unit once where both share it.

    >>> seconds_change(0.377, 0.258), seconds_change(0.9, 1.2)
    ('377 -> 258 ms', '900 ms -> 1.20 s')
    """
    (size, unit), (_, other) = seconds_unit(before), seconds_unit(after)
    return f"{significant(before / size) if unit == other else seconds(before)} -> {seconds(after)}"


def percent(share: float) -> str:
    """A share as whole percent, one decimal below 10 %."""
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def parts_in_gib(sizes: Sequence[float], total: float) -> list[str]:
    """Parts in GiB with one decimal that add up to the rounded total: the largest remainders are rounded up.

    >>> parts_in_gib([0.44 * GIB, 0.44 * GIB, 0.12 * GIB], GIB)
    ['0.5', '0.4', '0.1']
    """
    tenths = [int(size / GIB * 10) for size in sizes]
    missing = round(total / GIB * 10) - sum(tenths)
    order = sorted(range(len(sizes)), key=lambda at: sizes[at] / GIB * 10 - tenths[at], reverse=True)
    for at in order[: max(missing, 0)]:
        tenths[at] += 1
    return [f"{number / 10:,.1f}" for number in tenths]
