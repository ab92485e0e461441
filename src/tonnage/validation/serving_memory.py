"""Rows of kind `infer_memory` for those who study errors: what an engine's process takes beside its cache, measured over predicted."""

from collections.abc import Mapping

from tonnage.kernel.errors import TonnageError
from tonnage.validation._rows import Row
from tonnage.validation._serving_memory import Asked, asked, whole

__all__ = ["Asked", "asked", "factor"]


def factor(row: Row, references: Mapping[str, Row]) -> float | None:
    """Measured over predicted bytes of all that a served model takes, as far as the row says it; None where it does not."""
    try:
        question = asked(row, references)
        found = whole(row, question)
    except TonnageError:
        return None
    if found is None or min(found) <= 0:
        return None
    measured, predicted = found
    return measured / predicted
