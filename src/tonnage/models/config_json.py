"""A config.json, read strictly: one object, of bounded size and depth, no key twice, no number that is none."""

import json
from math import isinf, isnan
from typing import Any

from tonnage.errors import InvalidInput, shown

LARGEST = 10_000_000  # bytes
DEEPEST = 64
MOST_SECTIONS = 200_000
# Step sizes of state spaces are clamped to [0, Infinity], and transformers writes that down (Mamba 2, Nemotron-H).
_MAY_BE_INFINITE = frozenset({"time_step_limit"})


def parse(data: bytes, where: str) -> dict[str, Any]:
    """The fields; InvalidInput says what is wrong and in which field."""
    if len(data) > LARGEST:
        raise InvalidInput(f"{where} is larger than {LARGEST // 10**6} MB, so it is no config.json.")
    if data.count(b"[") + data.count(b"{") > MOST_SECTIONS:
        raise InvalidInput(f"{where} holds more than {MOST_SECTIONS:,} lists and objects, or is nested too deep.")
    try:
        text = data.decode("utf-8-sig")
        fields = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, where))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where} is not UTF-8 text: {error.reason} at byte {error.start}.") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{where} is not JSON: {error}.") from None
    except RecursionError:
        raise InvalidInput(f"{where} is nested more than {DEEPEST} deep.") from None
    except InvalidInput:
        raise
    except ValueError as error:  # a whole number of more digits than Python reads
        raise InvalidInput(f"{where} holds a number that cannot be read: {error}.") from None
    if not isinstance(fields, dict):
        raise InvalidInput(f"{where} must hold a JSON object. Got {type(fields).__name__}.")
    _check(fields, where)
    return fields


def _object(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise InvalidInput(f"{where} holds {shown(_twice(pairs))} twice in one object.")
    return made


def _twice(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            break
        seen.add(key)
    return key


def _check(fields: dict[str, Any], where: str) -> None:
    """Depth and numbers, without recursion."""
    waiting: list[tuple[Any, str, int]] = [(fields, "", 0)]
    while waiting:
        value, name, depth = waiting.pop()
        if isinstance(value, float) and (isnan(value) or (isinf(value) and name not in _MAY_BE_INFINITE)):
            raise InvalidInput(f"{where}: {name} must be a finite number. Got {value}.")
        if isinstance(value, dict | list):
            if depth >= DEEPEST:
                raise InvalidInput(f"{where} is nested more than {DEEPEST} deep.")
            inner = value.items() if isinstance(value, dict) else ((name, item) for item in value)
            waiting.extend((item, key, depth + 1) for key, item in inner if isinstance(item, dict | list | float))
