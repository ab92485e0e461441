"""Readers of names and texts."""

from collections.abc import Callable
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import option_name

Reader = Callable[[str, str], Any]  # (what was written, the name of the option) -> the value


def word(text: str, what: str) -> str:
    """A name, which must not be empty."""
    if not text.strip():
        raise InvalidInput("{what} is empty: give it a value, or leave the option out.", what=option_name(what))
    return text.strip()


def as_written(text: str, what: str) -> str:
    """A text that is read elsewhere."""
    return text
