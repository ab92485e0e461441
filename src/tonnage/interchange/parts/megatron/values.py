"""Values of Megatron's arguments, as a command or a file has them."""

import re
from typing import Any

from tonnage.interchange.parts.megatron.names import SWITCHES
from tonnage.interchange.reading import Reading

LARGEST = 10**6  # ranks


def switch(r: Reading, key: str) -> bool:
    """Whether a switch is on; off where it is not there."""
    return r.has(key) and r.flag(key)


def size(r: Reading, key: str, default: int = 1) -> int:
    """A number of ranks, layers or sequences: at least 1."""
    return r.size(key, default, LARGEST)


def listed_words(r: Reading, key: str) -> list[str]:
    """The words of a list, or of a text with commas or spaces between."""
    value = r.get(key, [])
    parts = value if isinstance(value, list) else [value]
    return [word for part in parts for word in re.split(r"[\s,]+", str(part)) if word]


def needs(r: Reading, key: str, harmless: tuple[str, ...], why: str) -> None:
    """A key that decides nothing with a harmless value, whether it is written as a number or as a text."""
    value: Any = r.values.get(key)
    plain = str(value).strip().lower()
    if key in SWITCHES and plain in ("false", "0", "no", "off"):
        value = None
    if value is not None and (plain in harmless or value == [] or plain in ("none", "null", "")):
        value = None
    if value is None:
        r.ignore([key])
    else:
        r.needs_default(key, why=why)
