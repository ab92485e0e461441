"""What several readers do with the values that they find in a text."""

import re
from collections.abc import Iterable
from statistics import median
from typing import Any

from tonnage.interchange.diagnose.log import Log
from tonnage.interchange.diagnose.patterns import LinePattern, stated
from tonnage.interchange.logs import Figure
from tonnage.kernel.units import GIB, MIB

NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?)"
NOT_PREDICTED = "this figure is not predicted"
_DECIMALS = 4  # that tools print at most; a size was turned into whole bytes and back


def number(text: str) -> float:
    """A number with separators of thousands."""
    return float(text.replace(",", ""))


def numbers(pattern: str, text: str) -> list[float]:
    """The number of each match of a pattern with one group."""
    return [number(match) for match in re.findall(pattern, text)]


def facts(text: str, signs: Iterable[LinePattern]) -> dict[str, list[float]]:
    """Name -> the numbers that lines of `signs` state, in the order of the signs, then of the lines; sizes in bytes.

    These are the lines that `tonnage diagnose` reads too.
    """
    plain = Log(text).text
    found: dict[str, list[float]] = {}
    for sign in signs:
        for each in stated(plain, sign):
            found.setdefault(each.name, []).append(each.value)
    return found


def in_gib(values: Iterable[float]) -> list[float]:
    """Bytes as GiB, with the digits that were printed."""
    return [round(value / GIB, _DECIMALS) for value in values]


def in_mib(values: Iterable[float]) -> list[float]:
    """Bytes as MiB, with the digits that were printed."""
    return [round(value / MIB, _DECIMALS) for value in values]


def first(values: Iterable[float]) -> tuple[float, int] | None:
    """The first of the values, and how many there are: further ones are of other ranks, or of a second start."""
    found = list(values)
    return (found[0], len(found)) if found else None


def last(values: Iterable[float]) -> tuple[float, int] | None:
    """The last of the values, which is a mean of all before it, and how many there are."""
    found = list(values)
    return (found[-1], len(found)) if found else None


def largest(values: Iterable[float]) -> tuple[float, int] | None:
    """The largest of the values, and how many there are; None where there are none."""
    found = list(values)
    return (max(found), len(found)) if found else None


def settled(values: Iterable[float]) -> tuple[float, int] | None:
    """The median of the values without the first, which warms up; of one value that one."""
    found = list(values)
    if not found:
        return None
    rest = found[1:] or found
    return (median(rest), len(rest))


def figure(quantity: str, found: tuple[float, int] | None, unit: str, metric: str, **more: Any) -> list[Figure]:
    """The figure of values that were found; none where there are none, or it is 0."""
    if found is None or not found[0] > 0:
        return []
    return [Figure(quantity=quantity, value=found[0], unit=unit, metric=metric, count=found[1], more=more)]


def unpredicted(found: tuple[float, int] | None, unit: str, metric: str) -> list[Figure]:
    """A figure that the tool states and no estimate has."""
    if found is None or not found[0] > 0:
        return []
    return [Figure(quantity="", value=found[0], unit=unit, metric=metric, count=found[1], skipped=NOT_PREDICTED)]
