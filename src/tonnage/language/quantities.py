"""Numbers of things in the current language: symbols of units (GiB, ms) are the same in all, words (requests) are
not.
"""

from collections.abc import Sequence

from tonnage.kernel import units
from tonnage.language import worded


def human(value: float, unit: str) -> str:
    """As units.human, with the words of the current language."""
    return worded(units.human(value, unit))


def human_column(values: Sequence[float | None], unit: str) -> list[str]:
    """As units.human_column, with the words of the current language."""
    return list(map(worded, units.human_column(values, unit)))


def counted(value: float, things: str) -> str:
    """As units.counted, with the words of the current language."""
    return worded(units.counted(value, things))
