"""What a question is about, in the few words that a list shows."""

from collections.abc import Mapping
from typing import Any

from tonnage.web.store.tables import SUBJECT_LENGTH

PASTED = "config.json"  # what stands for a pasted one, as in the command line
FIELDS = {"model": "model", "machine": "on", "method": "method"}  # column -> field of the question
VERSION_BYTES = 500  # of a version besides its question and its command line: figures, keys, indices


def subject(question: Mapping[str, Any]) -> dict[str, str | None]:
    """Model, machine and method. None where the question does not say it, or says it at length."""
    columns = {column: _short(question.get(field)) for column, field in FIELDS.items()}
    return columns | {"model": PASTED} if isinstance(question.get("model"), Mapping) else columns


def _short(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ",".join(value)
    return value if isinstance(value, str) and len(value) <= SUBJECT_LENGTH else None


def stored_bytes(question: str, command: str) -> int:
    """What a version counts against the limit of all saved plans."""
    return len(question.encode()) + len(command.encode()) + VERSION_BYTES
