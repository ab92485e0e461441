"""Rows in the words of their sources, read and answered: what tests of the readers in scripts/rows share."""

from collections.abc import Mapping, Sequence
from typing import Any

from rows.convert import converted
from rows.source import Measured, Row, read, references_of
from tonnage import validation
from tonnage.documents.document import builtins
from tonnage.kernel.errors import MissingDatum
from tonnage.validation import serving, training

__all__ = [
    "Measured",
    "Row",
    "own",
    "predict",
    "read",
    "references_of",
    "serving_question",
    "training_question",
    "validate",
]


def own(row: Row, known: Mapping[str, Row] | None = None) -> validation.Row:
    """The row in tonnage's own form."""
    return validation.row_of(converted(row, known or {}), row.file)


def validate(rows: Sequence[Row], known: Mapping[str, Row] | None = None) -> dict[str, Any]:
    """The document of `tonnage validate` about these rows."""
    references = references_of(rows) if known is None else known
    return builtins(validation.validate([own(row, references) for row in rows]))


def predict(row: Row, known: Mapping[str, Row] | None = None) -> list[dict[str, Any]]:
    """A line for the row's metric, and one for each under `also`."""
    return list(validate([row], known or {})["rows"])


def training_question(row: Row, known: Mapping[str, Row] | None = None) -> training.TrainingCase:
    """What the row asks of `train`; MissingDatum with the reason where it is no question."""
    return training.TrainingCase(_question(row, known))


def serving_question(row: Row, known: Mapping[str, Row] | None = None) -> serving.ServingCase:
    """What the row asks of `serve`; MissingDatum with the reason where it is no question."""
    return serving.ServingCase(_question(row, known))


def _question(row: Row, known: Mapping[str, Row] | None) -> validation.Row:
    made = own(row, known)
    if made.skipped:
        raise MissingDatum(made.skipped)
    return made
