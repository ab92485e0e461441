"""An estimate beside what a run says, as text."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.units import significant
from tonnage.language import say, worded
from tonnage.render.text import table_lines

HEADER = ("figure", "measured", "estimate", "error", "in the band", "log")


def reconciled_lines(document: Mapping[str, Any]) -> list[str]:
    """The verdict, and a line for each figure, those that are furthest off first."""
    figures = document["figures"]
    compared = [one for one in figures if one["relative_error"] is not None]
    rows = [_row(one) for one in sorted(figures, key=_distance, reverse=True)]
    notes = dict.fromkeys(worded(note) for one in figures for note in one["notes"])
    shown = [say("note: {what}", what=note) for note in notes]
    return [_first(compared, document), "", *table_lines(rows, HEADER), *([""] if shown else []), *shown]


def _first(compared: list[Mapping[str, Any]], document: Mapping[str, Any]) -> str:
    if not compared:
        return say("nothing of what {tools} says is predicted", tools=say(", ").join(document["tools"]))
    worst = max(compared, key=_distance)
    outside = [one for one in compared if one["inside"] is False]
    text = say(
        "{count} figures compared; furthest off: {figure}, estimate {error}",
        count=len(compared),
        figure=worst["quantity"],
        error=_percent(worst["relative_error"]),
    )
    return say("{text}; {count} outside the error band", text=text, count=len(outside)) if outside else text


def _distance(one: Mapping[str, Any]) -> float:
    return -1.0 if one["relative_error"] is None else abs(one["relative_error"])


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    unit = "" if one["unit"] == "count" else f" {one['unit']}"
    predicted = "-" if one["predicted"] is None else f"{significant(one['predicted'])}{unit}"
    inside = "-" if one["inside"] is None else say("yes") if one["inside"] else say("no")
    why = worded(one["skipped"]) if one["skipped"] else say("{tool}: {metric}", tool=one["tool"], metric=one["metric"])
    return (
        one["quantity"] or one["metric"],
        f"{significant(one['measured'])}{unit}",
        predicted,
        "-" if one["relative_error"] is None else _percent(one["relative_error"]),
        inside,
        why,
    )


def _percent(error: float) -> str:
    return f"{100 * error:+.1f} %"
