"""The form of what `tonnage max` prints: the largest value, the estimates at it and just beyond it, and what would
let it be more.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from tonnage.documents.advice import ChangeDocument
from tonnage.documents.document import Document
from tonnage.documents.question import Entry
from tonnage.kernel.term import TermDocument

# What keeps a value from being larger. model: what the model was made for, or has; engine: what it runs at once; rule:
# sizes that do not go together; options: another option that was given; nothing: no limit was found.
By = Literal["memory", "service level", "model", "engine", "rule", "options", "nothing"]


class TriedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A value that was estimated. `refused`: why it is none, however much memory there is, and then `fits` is false;
    `model`: whose parameters it is.
    """

    value: int
    needed_bytes: int | None
    usable_bytes: int
    band: tuple[int, int] | None
    fits: bool | None
    refused: str | None
    model: str | None


class LimitDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What binds, and the sentence about it."""

    by: By
    text: str


class RaiseDocument(ChangeDocument, kw_only=True, forbid_unknown_fields=True):
    """A change with which the search was run again: its largest `value` then, and what binds then. `options`: the
    change with the value too.
    """

    value: int
    options: dict[str, Any]
    needed_bytes: int
    limit: By
    model: str | UnsetType = UNSET


class MaxDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `max` answers.

    `value`: the largest that fits with the high end of the error band, null where not even the least does. `at`: the
    estimate there; `beyond`: that of the next value, or of the least where none fits; null where there is no next one.
    `tight_value`: the largest inside the error band, null where there is none; `estimate_value`: the largest by the
    estimate itself, null where no error band is known. `memory_value`: what memory alone would let it be, where
    something else binds. `options`, and `text` as flags, are what `verb` is asked with.
    `memory`: the breakdown at the value, or at the least. `speed`: seconds of a step of training; ttft_seconds,
    tpot_seconds and tokens_per_second of serving. In `question` the value that was looked for comes from "search".
    """

    question: dict[str, Entry]
    what: str
    verb: Literal["serve", "train"]
    value: int | None
    unit: str
    model: str | None
    options: dict[str, Any]
    text: str
    limit: LimitDocument
    at: TriedDocument | None
    beyond: TriedDocument | None
    tight_value: int | None
    estimate_value: int | None
    memory_value: int | None
    memory: TermDocument
    speed: dict[str, float]
    advice: list[RaiseDocument]
    warnings: list[str]
