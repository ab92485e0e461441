"""Rows in the form of their sources -> rows of tonnage's own form, each with its id, kind, completeness and further
metrics."""

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from rows.reading import Reading
from rows.source import Measured, Row
from tonnage.kernel.errors import MissingDatum, TonnageError, shown
from tonnage.validation import FAILED

# Which package reads a kind of row. Rows of other kinds are kept, and say that nothing predicts them.
READERS = {
    "params": "params",
    "train_memory": "training",
    "train_speed": "speed",
    "infer_memory": "serving_memory",
    "infer_speed": "serving_speed",
    "collective": "collectives",
}
_DAY = re.compile(r"\b(20\d\d-[01]\d(?:-[0-3]\d)?)\b")


def converted(row: Row, references: Mapping[str, Row]) -> dict[str, Any]:
    """The row in tonnage's own form; one that is no question has `skipped` with the reason."""
    head = {"id": row.id, "kind": row.kind}
    try:
        reading = _reader(row.kind)(row, references)
    except TonnageError as error:
        return head | _measured(row, None) | _kept(row) | _tail(row) | {"skipped": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever one row brings about, the others are read
        return (
            head
            | _measured(row, None)
            | _tail(row)
            | {"skipped": f"{FAILED} ({type(error).__name__}: {str(error)[:200]})"}
        )
    inputs = {
        "implied": dict(reading.implied),
        "guessed": dict(reading.guessed),
        "from_measured": dict(reading.from_measured),
        "remarks": list(reading.remarks),
        "labels": dict(reading.labels),
    }
    said = {name: value for name, value in inputs.items() if value}
    tail = _tail(row) | ({"completeness": reading.completeness} if reading.completeness else {})
    return head | {"verb": reading.verb, "question": dict(reading.question)} | _measured(row, reading) | said | tail


def _reader(kind: str) -> Callable[[Row, Mapping[str, Row]], Reading]:
    if kind not in READERS:
        return lambda row, references: _refuse(kind)
    read: Callable[[Row, Mapping[str, Row]], Reading] = import_module(f"rows.{READERS[kind]}").read
    return read


def _refuse(kind: str) -> Reading:
    raise MissingDatum(f"kind {shown(kind)} is not predicted yet; known: {', '.join(READERS)}")


def _kept(row: Row) -> dict[str, Any]:
    """What statistics about rows that are no question need of their config."""
    labels = {name: str(row.config[name]) for name in ("hardware", "tp") if name in row.config}
    return {"labels": labels} if labels else {}


def _measured(row: Row, reading: Reading | None) -> dict[str, Any]:
    also = [_figure(each, reading) for each in row.also]
    return {"measured": _figure(row.measured, reading)} | ({"also": also} if also else {})


def _figure(measured: Measured, reading: Reading | None) -> dict[str, Any]:
    """One metric: its quantity where the row is a question, else its source's words."""
    own = {"metric": measured.metric, "value": measured.value}
    if reading is None:
        return own | {"unit": measured.unit}
    try:
        made = reading.figure(measured)
    except TonnageError as error:
        return own | {"unit": measured.unit, "skipped": str(error)}
    return {"quantity": made["quantity"], "value": measured.value, **made, "metric": measured.metric}


def _tail(row: Row) -> dict[str, Any]:
    date = _DAY.search(row.source_name) or _DAY.search(str(row.config.get("framework", "")))
    found = {
        "source": row.source_name,
        "date": date[1] if date else "",
        "completeness": row.completeness,
        "note": row.note,
    }
    return {name: value for name, value in found.items() if value}


def all_converted(rows: Iterable[Row], references: Mapping[str, Row]) -> list[dict[str, Any]]:
    """All of these rows."""
    return [converted(row, references) for row in rows]
