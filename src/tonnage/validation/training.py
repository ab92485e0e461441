"""Rows of kind `train_memory` for those who study errors: what a row asks, and how measured and predicted compare."""

import re
from collections.abc import Mapping

from tonnage.errors import TonnageError
from tonnage.validation._rows import Row
from tonnage.validation._training import Asked, asked, predict
from tonnage.validation._training._figures import WHOLE, figure_of

__all__ = ["Asked", "asked", "factor", "source_of"]


def factor(row: Row, references: Mapping[str, Row]) -> float | None:
    """Measured over predicted, where both are numbers of bytes of a whole rank."""
    try:
        reader = asked(row, references).reader
        figure = figure_of(row.measured, reader.figure, reader.gigabyte, reader.activations)
    except TonnageError:
        return None
    made = predict(row, references)[0]
    if figure.kind not in WHOLE or isinstance(row.measured.value, str) or not made.value or not row.measured.value:
        return None
    return row.measured.value / made.value


def source_of(row: Row) -> str:
    """The document that a row's figure is from, without the place inside it."""
    return re.split(r"[,;(]| case ", row.source_name)[0].strip()
