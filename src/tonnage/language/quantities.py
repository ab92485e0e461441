"""Numbers of things in the current language: symbols of units (GiB, ms) are the same in all, words (requests) are
not.
"""

import re

from tonnage.kernel import units
from tonnage.language import current, say

_NUMBER = re.compile(r"-?[\d.,]+(?:e[+-]?\d+)?(?: [TBM](?= ))?")


def human(value: float, unit: str) -> str:
    """As units.human, with the words of the current language."""
    return _worded(units.human(value, unit), unit)


def counted(value: float, things: str) -> str:
    """As units.counted, with the words of the current language."""
    return _worded(units.counted(value, things), things)


def _worded(text: str, things: str) -> str:
    if current() == "en":
        return text
    found, form = _NUMBER.match(text), f"{{n}} {things}"
    into = say(form)
    if found is None or into == form or text[found.end() :].strip() not in (things, units.counted(1, things)[2:]):
        return text  # in a unit with a symbol, such as GiB for bytes
    return into.format(n=found[0])
