"""tonnage validate: predictions against published measurements."""

import argparse
import sys
from typing import Any

from tonnage.cli import _options as o
from tonnage.cli._print import print_json, print_lines
from tonnage.errors import InvalidInput

HELP = "predictions against published measurements, row by row"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rows",
        nargs="+",
        metavar="ROWS.yaml",
        help="files of rows, or folders of them, in the form of validation/README.md",
    )
    parser.add_argument("--kind", help="only rows of this kind (default: all)")
    o.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    from tonnage.validation import nothing_compared, of_kind, read, references_of, validate

    rows = read(arguments.rows)
    document = validate(of_kind(rows, arguments.kind), references_of(rows))
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(document))
    reason = nothing_compared(document)
    if reason:
        print(f"error: {reason}", file=sys.stderr)
    return InvalidInput.exit_status if reason else 0


def _lines(document: dict[str, Any]) -> list[str]:
    from tonnage.render.text import table_lines

    rows = [
        (
            line["id"],
            line["metric"],
            _number(line["measured"]),
            _number(line["predicted"]),
            _agreement(line["agrees"]) or _percent(line["relative_error"]),
            line["skipped"] or "; ".join(line["notes"]),
        )
        for line in document["rows"]
    ]
    worst = sorted(rows, key=lambda row: row[4] in ("-", "+0.00 %"))
    summary = [
        (entry["kind"], entry["completeness"], entry["source"][:60], entry["rows"], entry["covered"], _percent(entry["mean_abs"]),
         _percent(entry["median_abs"]), _percent(entry["p90_abs"]), _percent(entry["bias"]), _percent(entry["inside_band"]))
        for entry in document["summary"]
    ]  # fmt: skip
    header = ("kind", "rows", "source", "n", "covered", "mean", "median", "p90", "bias", "in band")
    return [
        f"{len(rows)} figures",
        "",
        *table_lines(worst, ("row", "metric", "measured", "predicted", "error", "skipped, or assumed")),
        "",
        *table_lines(summary, header),
    ]


def _number(value: Any) -> str:
    return (
        "-"
        if value is None
        else f"{value:,.6g}"
        if isinstance(value, float) and not value.is_integer()
        else f"{value:,.0f}"
        if isinstance(value, int | float)
        else str(value)
    )


def _agreement(agrees: bool | None) -> str:
    """For what has no number to compare with."""
    return "" if agrees is None else "as measured" if agrees else "otherwise"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.2f} %"
