"""Numbers of the short text: three significant digits, GiB with one decimal, money in cents, parts that add up."""

from collections.abc import Sequence

from tonnage.language import say

GIB = 1 << 30
# Seconds of a unit, and from how many seconds on it is used.
UNITS = ((86400.0, "d", 172800.0), (3600.0, "h", 7200.0), (60.0, "min", 600.0), (1.0, "s", 1.0), (1e-3, "ms", 1e-3))
SHORTEST = (1e-6, "us")


def significant(value: float, digits: int = 3) -> str:
    """So many significant digits, thousands separated, never an exponent.

    >>> significant(63550.7), significant(0.03), significant(9.999)
    ('63,600', '0.0300', '10.0')
    """
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # after rounding, so that 9.999 is 10.0
    decimals = digits - 1 - exponent
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


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

    >>> seconds(0.3787), seconds(5.2), seconds(1080), seconds(90000)
    ('379 ms', '5.20 s', '18.0 min', '25.0 h')
    """
    size, unit = seconds_unit(value)
    return f"{significant(value / size)} {unit}"


def target(value: float) -> str:
    """A time as it was asked for: 300 ms, 1 s."""
    size, unit = seconds_unit(value)
    return f"{value / size:g} {unit}"


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


def money(value: float) -> str:
    """USD without the unit: whole from 100 on, two decimals, three below 0.1.

    >>> money(205.4), money(1.1287), money(0.0549), money(0.00012)
    ('205', '1.13', '0.055', '0.00012')
    """
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 0.1 or value == 0:
        return f"{value:.2f}"
    return f"{value:.3f}" if value >= 0.01 else significant(value, 2)


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
