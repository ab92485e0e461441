"""Predictions against published measurements, row by row. A kind of row is one module with `predict`."""

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Any

from tonnage.document import SCHEMA
from tonnage.errors import UnknownName, shown
from tonnage.validation import _params
from tonnage.validation._rows import Row
from tonnage.validation._rows import read as read

PREDICTORS = {"params": _params.predict}


def of_kind(rows: Sequence[Row], kind: str | None) -> list[Row]:
    """The rows of a kind, all of them without one; UnknownName for a kind that no row has."""
    kinds = sorted({row.kind for row in rows})
    if kind is not None and kind not in kinds:
        raise UnknownName(f"no row is of kind {shown(kind)}. These rows are of {', '.join(kinds[:20])}.")
    return [row for row in rows if kind in (None, row.kind)]


def nothing_compared(document: Mapping[str, Any]) -> str | None:
    """Why no row could be compared with a prediction, None where one was."""
    lines = [line for line in document["rows"] if line["main"]]
    if any(line["relative_error"] is not None or line["agrees"] is not None for line in lines):
        return None
    reason = next((line["skipped"] for line in lines if line["skipped"]), "no row has a value to compare with")
    return f"none of the {len(lines)} rows could be compared: {reason}"


def validate(rows: Sequence[Row]) -> dict[str, Any]:
    """The document of `tonnage validate`: every row with its prediction or the reason for none, and a summary."""
    references = {str(row.model.get("id", row.id.removeprefix("params-"))): row for row in rows if row.kind == "params"}
    compared = [line for row in rows for line in _compare(row, references)]
    return {"schema": SCHEMA, "rows": compared, "summary": _summary(rows, compared)}


def _compare(row: Row, references: Mapping[str, Row]) -> list[dict[str, Any]]:
    predictor = PREDICTORS.get(row.kind)
    if predictor is None:
        unpredicted = f"kind {shown(row.kind)} is not predicted yet; known: {', '.join(PREDICTORS)}"
        return [_line(row, row.measured, True, None, unpredicted)]
    predicted, skipped = predictor(row, references)
    also = [_line(row, measured, False, None, f"{measured.metric} is not predicted yet") for measured in row.also]
    return [_line(row, row.measured, True, predicted, skipped), *also]


def _line(row: Row, measured: Any, main: bool, predicted: float | None, skipped: str | None) -> dict[str, Any]:
    number = isinstance(measured.value, int | float)
    error = (
        (predicted - measured.value) / measured.value if predicted is not None and number and measured.value else None
    )
    return {
        "id": row.id, "kind": row.kind, "completeness": row.completeness, "metric": measured.metric, "main": main,
        "measured": measured.value, "predicted": predicted, "unit": measured.unit, "relative_error": error, "agrees": None,
        "band": None, "skipped": skipped,
    }  # fmt: skip


def _summary(rows: Sequence[Row], compared: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    by_id = {row.id: row for row in rows}
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for line in compared:
        if line["main"]:
            row = by_id[line["id"]]
            groups.setdefault((row.kind, row.completeness_class, ""), []).append(line)
            if row.source_name:
                groups.setdefault((row.kind, row.completeness_class, row.source_name), []).append(line)
    return [_group(*key, lines) for key, lines in sorted(groups.items())]


def _group(kind: str, completeness: str, source: str, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One line of the summary; an empty source means all of them."""
    errors = sorted(abs(line["relative_error"]) for line in lines if line["relative_error"] is not None)
    signed = [line["relative_error"] for line in lines if line["relative_error"] is not None]
    return {
        "kind": kind, "completeness": completeness, "source": source or "all", "rows": len(lines), "covered": len(errors),
        "mean_abs": mean(errors) if errors else None, "median_abs": median(errors) if errors else None,
        "p90_abs": errors[max(-(-9 * len(errors) // 10) - 1, 0)] if errors else None, "bias": mean(signed) if signed else None,
        "inside_band": None,
    }  # fmt: skip
