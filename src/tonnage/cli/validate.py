"""tonnage validate: predictions against published measurements."""

import argparse
import sys
from typing import Any

from tonnage.cli.common.parser import add_output
from tonnage.cli.common.print import in_error, print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.kernel.errors import InvalidInput
from tonnage.language import say, say_as, worded
from tonnage.question.form import Given

HELP = "predictions against published measurements, row by row"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rows", nargs="+", metavar="ROWS.yaml", help="files of rows, or folders of them, in the form of docs/rows.md"
    )
    parser.add_argument("--kind", help="only rows of this kind (default: all)")
    add_output(parser)


def run(arguments: Given) -> int:
    from tonnage.validation import Malformed, nothing_compared, of_kind, read, validate

    malformed: list[Malformed] = []
    if not all(arguments.rows):
        raise InvalidInput("ROWS is empty: name a file of rows, or a folder of them.")
    rows = read(arguments.rows, malformed)
    document = validate(of_kind(rows, arguments.kind), malformed)
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(builtins(document)))
    reason = nothing_compared(document)
    if reason:
        print(in_error(reason), file=sys.stderr)
    return InvalidInput.exit_status if reason else 0


def _lines(document: dict[str, Any]) -> list[str]:
    from tonnage.language.quantities import counted
    from tonnage.render.text import table_lines

    rows = [
        (
            line["id"],
            line["metric"],
            _number(line["measured"]),
            _number(line["predicted"]),
            _agreement(line["agrees"]) or _percent(line["relative_error"]),
            worded(line["skipped"] or "") or say("; ").join(map(worded, line["notes"])),
        )
        for line in document["rows"]
    ]
    worst = sorted(rows, key=lambda row: row[4] in ("-", "+0.00 %"))
    summary = [
        (
            say(entry["kind"]),
            say_as("rows", entry["completeness"]),
            entry["source"][:60],
            entry["rows"],
            entry["covered"],
            _percent(entry["mean_abs"]),
            _percent(entry["median_abs"]),
            _percent(entry["p90_abs"]),
            _percent(entry["bias"]),
            _percent(entry["inside_band"]),
        )
        for entry in document["summary"]
    ]
    header = ("kind", "rows", "source", "n", "covered", "mean", "median", "p90", "bias", say("in band"))
    return [
        counted(len(rows), "figures"),
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
    return "" if agrees is None else say("as measured") if agrees else say("otherwise")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.2f} %"
