"""tonnage explain: a formula, a symbol of the formulas, a word of the answers, an option, or a source."""

import argparse
from typing import Any

from msgspec import structs

from tonnage.cli import rules
from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.kernel.formula import FORMULAS
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.explain import answer, explain, is_explained_by_rule, load_formulas, names

HELP = (
    "a formula, a symbol of the formulas, a word of the answers, an option, a source or a rule of thumb: text, "
    "unit, meaning, where it comes from"
)

SAID = ("unit", "meaning", "assumes", "basis", "source", "where")  # words, of what is listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("explain"))
    add_output(parser)


def run(arguments: Given) -> int:
    if arguments.json:
        print_json(answer(arguments).document)
        return 0
    load_formulas()
    if arguments.name is None:
        listed = structs.asdict(names())
        print_lines([f"{say(kind)}{say(': ')}{', '.join(each)}" for kind, each in listed.items()])
    elif is_explained_by_rule(arguments.name):
        rules.print_rule(arguments.name, formulas=arguments.formulas)
    else:
        print_lines(_lines(builtins(explain(arguments.name))))
    return 0


def _lines(document: dict[str, Any]) -> list[str]:
    lines = [f"{document['name']} ({say(document['kind'])})"]
    for key in (
        "text",
        "long_name",
        "unit",
        "meaning",
        "assumes",
        "basis",
        "source",
        "authors",
        "title",
        "year",
        "where",
        "checked",
    ):
        if document.get(key):
            value = worded(str(document[key])) if key in SAID else document[key]
            lines.append(f"  {left(say(key.replace('_', ' ')), 10)} {value}")
    for symbol in document.get("symbols", []):
        lines.append(
            f"    {symbol['letter']:<8} {symbol['long_name']} [{say(symbol['unit'])}]: {worded(symbol['meaning'])}"
        )
    for reference in document.get("references", []):
        lines.append(
            "    "
            f"{reference['key']}{say(': ')}"
            + ", ".join(str(reference[name]) for name in ("authors", "title", "year", "where") if reference[name])
        )
    if document.get("see"):
        lines.append(f"  {left(say('see'), 10)} {', '.join(document['see'])}")
        lines += [f"    {name} = {FORMULAS[name].text}" for name in document["see"] if name in FORMULAS]
    if document.get("formulas"):
        lines.append(f"  {left(say('used in'), 10)} {', '.join(document['formulas'])}")
    return lines
