"""Predictions against measurements, row by row: rows in the form of docs/rows.md, each asked as the ordinary question
that it is."""

from collections.abc import Callable, Sequence
from statistics import mean, median

from tonnage.documents.validation import RowDocument, SummaryDocument, ValidationDocument
from tonnage.kernel.errors import TonnageError, UnknownName, shown
from tonnage.kernel.message import Message, listed
from tonnage.validation.quantities import VERBS
from tonnage.validation.rows import Malformed as Malformed
from tonnage.validation.rows import Measured as Measured
from tonnage.validation.rows import Prediction
from tonnage.validation.rows import Row as Row
from tonnage.validation.rows import read as read
from tonnage.validation.rows import row_of as row_of

# How the reason begins where tonnage itself is at fault; tests of odd rows look for it.
FAILED = "tonnage failed on this row, which is a defect of tonnage; please report it"


def _predictor(verb: str, kind: str) -> Callable[[Row], list[Prediction]]:
    """What makes a prediction for a row's own figure, then one for each under `also`."""
    if verb == "train":
        from tonnage.validation.training import predict as train

        return train
    if kind == "embed_speed":
        from tonnage.validation.encoding import predict as encoding

        return encoding
    if verb == "serve":
        from tonnage.validation.serving import predict as serve

        return serve
    if verb == "collectives":
        from tonnage.validation.collectives import predict as collectives

        return collectives
    from tonnage.validation.subjects import predict_parameters as models

    return models


def of_kind(rows: Sequence[Row], kind: str | None) -> list[Row]:
    """The rows of a kind, all of them without one; UnknownName for a kind that no row has."""
    kinds = sorted({row.kind for row in rows})
    if kind is not None and kind not in kinds:
        raise UnknownName(
            "no row is of kind {kind}. These rows are of {kinds}.", kind=shown(kind), kinds=listed(kinds[:20])
        )
    return [row for row in rows if kind in (None, row.kind)]


def nothing_compared(document: ValidationDocument) -> str | None:
    """Why no row could be compared with a prediction, None where one was."""
    lines = [line for line in document.rows if line.main]
    if any(line.relative_error is not None or line.agrees is not None for line in lines):
        return None
    reason = next((line.skipped for line in lines if line.skipped), "no row has a value to compare with")
    return Message("none of the {count} rows could be compared: {reason}", count=len(lines), reason=reason)


def validate(rows: Sequence[Row], malformed: Sequence[Malformed] = ()) -> ValidationDocument:
    """The document of `tonnage validate`: every row with its prediction or the reason for none, and a summary.

    `malformed`: rows that have not the form of one, which are listed with their reason.
    """
    compared = [line for row in rows for line in _compare(row)]
    summary = _summary(rows, compared)
    return ValidationDocument(rows=[*compared, *map(_malformed_line, malformed)], summary=summary)


def _malformed_line(row: Malformed) -> RowDocument:
    return RowDocument(
        id=row.id,
        kind="malformed",
        completeness="",
        metric="",
        main=True,
        measured=None,
        predicted=None,
        unit="",
        relative_error=None,
        agrees=None,
        band=None,
        skipped=row.reason,
        notes=[],
    )


def _compare(row: Row) -> list[RowDocument]:
    every = (row.measured, *row.also)
    if row.skipped or row.verb not in VERBS:
        predictions = [Prediction(skipped=row.skipped or "the row names no verb") for _ in every]
        return [_line(row, measured, prediction) for measured, prediction in zip(every, predictions, strict=True)]
    try:
        predictions = _predictor(row.verb, row.kind)(row)
    except TonnageError as error:
        predictions = [Prediction(skipped=str(error)) for _ in every]
    except Exception as error:  # noqa: BLE001 - whatever one row brings about, the others are compared
        predictions = [Prediction(skipped=f"{FAILED} ({type(error).__name__}: {str(error)[:200]})") for _ in every]
    return [_line(row, measured, prediction) for measured, prediction in zip(every, predictions, strict=True)]


def _line(row: Row, measured: Measured, prediction: Prediction) -> RowDocument:
    """One metric beside its prediction. What is right or wrong as a whole (`agrees`) has no error."""
    comparable = (
        prediction.value is not None
        and prediction.agrees is None
        and not isinstance(measured.value, str)
        and measured.value
    )
    error = (prediction.value - measured.value) / measured.value if comparable else None  # type: ignore[operator]
    return RowDocument(
        id=row.id,
        kind=row.kind,
        completeness=row.completeness,
        metric=measured.name,
        main=measured is row.measured,
        measured=measured.value,
        predicted=prediction.value,
        unit=measured.unit,
        relative_error=error,
        agrees=prediction.agrees,
        band=prediction.band,
        skipped=prediction.skipped,
        notes=list(prediction.notes),
    )


def _summary(rows: Sequence[Row], compared: Sequence[RowDocument]) -> list[SummaryDocument]:
    by_id = {row.id: row for row in rows}
    groups: dict[tuple[str, str, str], list[RowDocument]] = {}
    for line in compared:
        if line.main:
            row = by_id[line.id]
            groups.setdefault((row.kind, row.completeness_class, ""), []).append(line)
            if row.source:
                groups.setdefault((row.kind, row.completeness_class, row.source), []).append(line)
    return [_group(*key, lines) for key, lines in sorted(groups.items())]


def _group(kind: str, completeness: str, source: str, lines: Sequence[RowDocument]) -> SummaryDocument:
    """One line of the summary; an empty source means all of them."""
    errors = sorted(abs(line.relative_error) for line in lines if line.relative_error is not None)
    signed = [line.relative_error for line in lines if line.relative_error is not None]
    covered = sum(line.relative_error is not None or line.agrees is not None for line in lines)
    banded = [(line.measured, line.band) for line in lines if line.band]
    inside = [isinstance(measured, float | int) and low <= measured <= high for measured, (low, high) in banded]
    return SummaryDocument(
        kind=kind,
        completeness=completeness,
        source=source or "all",
        rows=len(lines),
        covered=covered,
        mean_abs=mean(errors) if errors else None,
        median_abs=median(errors) if errors else None,
        p90_abs=errors[max(-(-9 * len(errors) // 10) - 1, 0)] if errors else None,
        bias=mean(signed) if signed else None,
        inside_band=sum(inside) / len(inside) if inside else None,
    )
