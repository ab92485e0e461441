"""tonnage prices --api: what a million tokens of hosted models cost, each price with its source and age; and what
given requests cost.
"""

import argparse
from typing import Any

from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.kernel.units import human
from tonnage.language import say, worded
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.prices_api import answer

HELP = (
    "what a million tokens of hosted models cost (USD), each price with its source and date; and what requests "
    "of a length cost there"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("prices", "api"))
    add_output(parser)


def run(arguments: Given) -> int:
    document = answer(arguments).document
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(builtins(document)))
    return 0


def _lines(document: dict[str, Any]) -> list[str]:
    from tonnage.render.text import table_lines

    rows, request, name = document["prices"], document["request"], document["model"]
    if not rows:
        if name:
            return [
                say("no price of {name} by the token is known. Yours go in <config directory>/api_prices/.", name=name)
            ]
        return [say("no price by the token is known. Yours go in <config directory>/api_prices/.")]
    header = [
        "model",
        "provider",
        "input",
        "cached",
        "output",
        *([say("a request"), say("a million tokens")] if request else ()),
        *([say("a day")] if request and request["requests_per_day"] else ()),
        say("as of"),
        "age",
    ]
    lines = [
        say("{rows_count} prices of {name} by the token, USD a million", rows_count=len(rows), name=name)
        if name
        else say("{rows_count} prices by the token, USD a million", rows_count=len(rows))
    ]
    if request:
        lines.append(
            say(
                "a request: {input_tokens} tokens, {cached_tokens} of them cached, and an answer of {output_tokens}",
                input_tokens=f"{request['input_tokens']:,}",
                cached_tokens=f"{request['cached_tokens']:,}",
                output_tokens=f"{request['output_tokens']:,}",
            )
        )
    lines += ["", *table_lines([_cells(row, request) for row in rows], header), ""]
    lines += [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]
    if name:
        notes = {row["note"]: row["provider"] for row in rows if row["note"]}
        lines += [
            say("note: {provider}: {note}", provider=provider, note=worded(note)) for note, provider in notes.items()
        ]
        lines += [say("source: {what}", what=source) for source in dict.fromkeys(row["source"] for row in rows)]
        lines.append(
            say(
                "beside own machines: tonnage serve {name} --on CLUSTER --input-tokens N --output-tokens N --users N",
                name=name,
            )
        )
    return lines if lines[-1] else lines[:-1]


def _cells(row: dict[str, Any], request: dict[str, Any] | None) -> list[str]:
    cells = [
        row["model"],
        row["provider"],
        *(
            "-" if row[f"{kind}_usd"] is None else f"{row[f'{kind}_usd']:.3f}"
            for kind in ("input", "cached_input", "output")
        ),
    ]
    if request:
        cells += [f"{row['request']['value']:.6f} USD", human(row["cost_per_million_tokens"]["value"], "USD")]
    if request and request["requests_per_day"]:
        cells.append(human(row["usd_per_day"]["value"], "USD"))
    return [*cells, row["as_of"], f"{row['age_days']} d{(say(', stale') if row['stale'] else '')}"]
