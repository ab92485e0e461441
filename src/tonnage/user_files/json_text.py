"""JSON within bounds: finite numbers, unique keys, bounded depth."""

import json
import re
from collections.abc import Collection
from math import inf, isinf, isnan
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.user_files import decode

MAX_DEPTH = 64
MOST_SECTIONS = 200_000  # lists and objects of one text
_LONG = 309  # digits of a whole number that no float holds
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % _LONG)


def parse(
    data: bytes, where: str, *, sections: int = MOST_SECTIONS, may_be_infinite: Collection[str] = frozenset()
) -> Any:
    """The value that a text in UTF-8 holds. InvalidInput names the place and the field.

    `may_be_infinite`: fields that hold Infinity in files that people publish.
    """
    if data.count(b"[") + data.count(b"{") > sections:
        raise InvalidInput(
            "{where} holds more than {sections:,} lists and objects, or is nested too deep.",
            where=where,
            sections=sections,
        )
    text = decode(data, where)
    try:
        value = json.loads(
            text,
            object_pairs_hook=lambda pairs: _object(pairs, where),
            parse_int=_whole if _LONG_NUMBER.search(data) else None,
        )
    except json.JSONDecodeError as error:
        raise InvalidInput("{where} is not JSON: {error}.", where=where, error=error) from None
    except RecursionError:
        raise InvalidInput("{where} is nested more than {deepest} deep.", where=where, deepest=MAX_DEPTH) from None
    _check(value, where, may_be_infinite)
    return value


def _whole(digits: str) -> int | float:
    """A whole number; infinity for one larger than any float, which the check of numbers then refuses by its field."""
    return int(digits) if len(digits) < _LONG else -inf if digits.startswith("-") else inf


def _object(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidInput(
            "{where} holds {first_repeated} twice in one object.",
            where=where,
            first_repeated=shown(first_repeated((key for key, _ in pairs))),
        )
    return fields


def first_repeated(names: Any) -> Any:
    """The first name that is there twice; None where all are different."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _check(root: Any, where: str, may_be_infinite: Collection[str]) -> None:
    """Check depth and numbers, without recursion."""
    waiting: list[tuple[Any, str, int]] = [(root, "", 0)]
    while waiting:
        value, name, depth = waiting.pop()
        if isinstance(value, float) and (isnan(value) or (isinf(value) and name not in may_be_infinite)):
            raise InvalidInput(
                "{where}: {name} must be a finite number. Got {value}.",
                where=where,
                name=name or "a number",
                value=value,
            )
        if isinstance(value, dict | list):
            if depth >= MAX_DEPTH:
                raise InvalidInput("{where} is nested more than {deepest} deep.", where=where, deepest=MAX_DEPTH)
            inner = value.items() if isinstance(value, dict) else ((name, item) for item in value)
            waiting.extend((item, key, depth + 1) for key, item in inner if isinstance(item, dict | list | float))
