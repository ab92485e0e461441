"""The part of docs/accuracy_details.md about publications of 2025 and 2026: rows that no fit may read, and rows that
fits read if asked to.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from _rows_for_fits import RECENT
from tonnage.documents.document import builtins
from tonnage.validation import Row, read, validate

Line = Mapping[str, Any]
Table = Callable[[str, Mapping[str, Sequence[Line]]], list[str]]


def recent(
    table: Table, worst: Callable[[Sequence[Line]], list[str]], skipped: Callable[[Sequence[Line]], list[str]]
) -> list[str]:
    """Tables of both halves, and of both together by publication, engine and accelerator; the worst rows."""
    rows = {row.id: row for row in read([str(RECENT)])}
    every: list[Line] = [line for line in builtins(validate(list(rows.values())))["rows"] if line["main"]]
    lines = [line for line in every if not line["completeness"].startswith("indicative")]
    left_out = [line for line in lines if rows[line["id"]].left_out]
    shown = [line for line in lines if not rows[line["id"]].left_out]
    return [
        "## Publications of 2025 and 2026",
        "",
        (
            f"From [validation/recent](../validation/recent): {len(every)} rows, of which "
            f"{sum(row.left_out for row in rows.values())} are left out of every fit for good (`left_out`, at least a "
            "quarter of each"
        ),
        (
            "publication, chosen by scripts/leave_out.py from their ids). Of the fits that ship, that of "
            "serving's rates alone has read the others (`--recent`). One figure a row."
        ),
        "",
        "### New sources, left out",
        "",
        *table("figure", _by(left_out, lambda line: _quantity(rows, line))),
        *table("publication", _by(left_out, lambda line: _publication(rows, line))),
        "### New sources, shown",
        "",
        *table("figure", _by(shown, lambda line: _quantity(rows, line))),
        *table("publication", _by(shown, lambda line: _publication(rows, line))),
        "### New sources by engine and runtime",
        "",
        *table("engine or runtime", _by(lines, lambda line: _program(rows[line["id"]]))),
        "### New sources by accelerator",
        "",
        *table("accelerator", _by(lines, lambda line: accelerator(rows[line["id"]]))),
        "### The worst rows of new sources",
        "",
        *worst(lines),
        "### Rows of new sources that were skipped",
        "",
        *skipped(lines),
    ]


def _by(lines: Iterable[Line], of: Callable[[Line], str]) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(of(line), []).append(line)
    return dict(sorted(groups.items()))


def _quantity(rows: Mapping[str, Row], line: Line) -> str:
    return rows[line["id"]].measured.quantity.replace("_", " ")


def _publication(rows: Mapping[str, Row], line: Line) -> str:
    """The publication; pull requests of one repository together."""
    name = str(rows[line["id"]].labels.get("publication", ""))
    return re.sub(r"-pr-\d+$", "-pull-requests", name)


def _program(row: Row) -> str:
    return str(row.question.get("engine") or row.question.get("runtime") or "not said")


def accelerator(row: Row) -> str:
    """The accelerator of a row's machine, without how many."""
    on = row.question.get("on")
    if isinstance(on, Mapping):
        on = on.get("accelerator", "")
        on = on.get("like", on.get("name", "")) if isinstance(on, Mapping) else on
    return re.sub(r"^(\d+x)+", "", str(on or "not said"))
