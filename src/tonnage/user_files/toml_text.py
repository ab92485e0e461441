"""TOML within bounds: keys of few parts, numbers of 64 bits, no dates.

tomllib takes time that grows with the square of the parts of a key, so their number is bounded before it reads the
text.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.reach import called
from tonnage.user_files import read_text

LARGEST = 10_000_000  # bytes
MAX_PARTS = 16  # of a key: a.b.c has three
MAX_DEPTH = 32
_PART = r"(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_PARTS}}}")


def load(path: Path, largest: int = LARGEST) -> dict[str, Any]:
    """The tables of a file; InvalidInput where it cannot be read, is no TOML, or has values that user files do not
    need.
    """
    return parse(read_text(path, largest), called(path))


def parse(text: str, where: str) -> dict[str, Any]:
    """The tables of a text."""
    long_key = _LONG_KEY.search(text)
    if long_key:
        raise InvalidInput(
            "{where} has a key of more than {most_parts} parts. Got {group}.",
            where=where,
            most_parts=MAX_PARTS,
            group=shown(long_key.group()),
        )
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise InvalidInput("{where} is nested more than {deepest} deep.", where=where, deepest=MAX_DEPTH) from None
    except ValueError as error:  # no TOML, or a whole number of more digits than Python reads
        raise InvalidInput("{where} is not TOML: {error}", where=where, error=str(error)[:300]) from None
    _check(tables, where)
    return tables


def _check(tables: Any, where: str) -> None:
    """Check depth, numbers and dates, without recursion."""
    waiting: list[tuple[Any, str, int]] = [(tables, "", 0)]
    while waiting:
        value, name, depth = waiting.pop()
        if isinstance(value, dict | list):
            if depth >= MAX_DEPTH:
                raise InvalidInput("{where} is nested more than {deepest} deep.", where=where, deepest=MAX_DEPTH)
            inner = value.items() if isinstance(value, dict) else ((name, item) for item in value)
            waiting.extend((item, key, depth + 1) for key, item in inner if not isinstance(item, str | float))
        elif not isinstance(value, int):
            raise InvalidInput(
                "{where}: {name} is a date or a time: write it as a text in quotes. Got {value}.",
                where=where,
                name=name,
                value=value,
            )
        elif not -(2**63) <= value < 2**64:
            raise InvalidInput(
                "{where}: {path} is a number out of range. Got {value}.", where=where, path=name, value=shown(value)
            )
