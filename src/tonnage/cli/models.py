"""tonnage models: the catalogue of models, and one model in detail."""

import argparse
from typing import Any

from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.kernel.units import human
from tonnage.language import quantities, say, worded
from tonnage.language.columns import left
from tonnage.question.form import Given
from tonnage.question.looked_up import no_model, read_model
from tonnage.question.verbs import form_of
from tonnage.verbs.models import describe, listed

HELP = "the catalogue of models; one model in detail: its parameters part by part, its cache, its sources"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("models"))
    add_output(parser)


def run(arguments: Given) -> int:
    if no_model(arguments):
        return _list(arguments.json)
    model = read_model(arguments)
    document, terms = describe(model)
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(builtins(document), terms, arguments.formulas))
    return 0


def _list(as_json: bool) -> int:
    document = listed()
    if as_json:
        print_json(document)
        return 0
    from tonnage.render.text import table_lines

    cells = [
        (
            row.name,
            human(row.parameters, "parameters").removesuffix(" parameters"),
            human(row.active_parameters, "parameters").removesuffix(" parameters"),
            str(row.layers),
            str(row.context or "-"),
            row.family,
            row.hub,
        )
        for row in document.models
    ]
    print_lines(
        [
            quantities.counted(len(document.models), "models"),
            "",
            *table_lines(cells, ("name", "parameters", "active", "layers", "context", "family", "hub")),
        ]
    )
    return 0


def _lines(document: dict[str, Any], terms: dict[str, Any], formulas: bool) -> list[str]:
    from tonnage.render.text import tree_lines

    lines = [f"{document['name']}{say(': ')}{quantities.human(terms['parameters'].value, 'parameters')}"]
    for key in (
        "architecture",
        "family",
        "hub",
        "source",
        "released",
        "license",
        "hidden_size",
        "num_layers",
        "vocab_size",
        "context",
        "dtype",
    ):
        if document.get(key) not in (None, ""):
            lines.append(f"  {left(say(key), 14)} {worded(str(document[key])) if key == 'source' else document[key]}")
    for term in terms.values():
        lines += ["", *tree_lines(term, depth=99 if formulas else 1, formulas=formulas)]
    for published in document.get("published", []):
        lines.append(
            say(
                "published: {parameters} ({counts}), {source}, {as_of}",
                parameters=published["parameters"],
                counts=worded(published["counts"]),
                source=published["source"],
                as_of=published["as_of"],
            )
        )
    lines += [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]
    return lines
