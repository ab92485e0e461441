"""Rows of kind `train_memory` for those who study errors: what a row asks, and how measured and predicted compare."""

import re
from collections.abc import Mapping

from tonnage.kernel.errors import TonnageError
from tonnage.validation._rows import Measured, Row
from tonnage.validation._training import Asked, asked, predict
from tonnage.validation._training._figures import figure_of
from tonnage.validation._training._reader import Reader

__all__ = ["Asked", "asked", "factor", "predict", "publisher_of", "source_of"]

# Figures of a whole rank, the one that leaves least out first: a verdict is about the process.
WIDEST = ("process", "reserved", "allocated")


def factor(row: Row, references: Mapping[str, Row]) -> float | None:
    """Measured over predicted bytes of a whole rank, of the row's figure that leaves least out; None where it has none."""
    try:
        reader = asked(row, references).reader
    except TonnageError:
        return None
    best: tuple[int, float] | None = None
    for measured, made in zip((row.measured, *row.also), predict(row, references), strict=True):
        kind = _kind(measured, reader)
        if kind not in WIDEST or isinstance(measured.value, str) or not made.value or not measured.value:
            continue
        rank = WIDEST.index(kind)
        if best is None or rank < best[0]:
            best = rank, measured.value / made.value
    return best[1] if best else None


def _kind(measured: Measured, reader: Reader) -> str:
    try:
        return figure_of(measured, reader.figure, reader.gigabyte, reader.activations).kind
    except TonnageError:
        return ""


def source_of(row: Row) -> str:
    """The document that a row's figure is from, without the place inside it."""
    return re.split(r"[,;(]| case ", row.source_name)[0].strip()


def publisher_of(row: Row) -> str:
    """Who published a row's figure: a repository's owner and name, else the document without the number of its figure or table."""
    document = source_of(row)
    repository = re.match(r"[\w.-]+/[\w.-]+", document)
    return repository[0] if repository else re.split(r" (?:Figure|Table|section|sec\.) ", document)[0].strip()
