"""A config.json, read strictly: one object, of bounded size and depth, with unique keys and finite numbers."""

from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.user_files import json_text

LARGEST = 10_000_000  # bytes
MAX_DEPTH = json_text.MAX_DEPTH
# Step sizes of state spaces are clamped to [0, Infinity], and transformers writes that down (Mamba 2, Nemotron-H).
_MAY_BE_INFINITE = frozenset({"time_step_limit"})


def parse(data: bytes, where: str) -> dict[str, Any]:
    """The fields; InvalidInput names the field and the problem."""
    if len(data) > LARGEST:
        raise InvalidInput(
            "{where} is larger than {largest} MB, so it is no config.json.", where=where, largest=LARGEST // 10**6
        )
    fields = json_text.parse(data, where, may_be_infinite=_MAY_BE_INFINITE)
    if not isinstance(fields, dict):
        raise InvalidInput("{where} must hold a JSON object. Got {fields}.", where=where, fields=type(fields).__name__)
    return fields
