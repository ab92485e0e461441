"""tonnage rules: the rules of thumb of the five source documents."""

import argparse
from typing import Any

from tonnage.cli import _options as o
from tonnage.cli._print import print_json, print_lines
from tonnage.document import SCHEMA
from tonnage.units import GB, human

HELP = "the rules of thumb, each worked, with its source, its erratum and the exact figure beside it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="a rule, such as A6 or B1b; none: all")
    parser.add_argument(
        "--model", metavar="MODEL", help="work the rules on this model instead of the documents' own examples"
    )
    o.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    from tonnage import rules

    rules.load()
    model = None
    if arguments.model:
        from tonnage.models import read

        model = read(arguments.model)
    chosen = [rules.RULES[_name(arguments.name)]] if arguments.name else list(rules.RULES.values())
    if arguments.json:
        print_json({"schema": SCHEMA, "rules": [rule.to_dict(model) for rule in chosen]})
    elif arguments.name:
        print_lines(_detail(chosen[0], model, arguments.formulas))
    else:
        print_lines(_overview(chosen, model))
    return 0


def _name(given: str) -> str:
    """ "a6" and "b1B" are A6 and B1b."""
    return given[:1].upper() + given[1:].lower()


def _overview(chosen: list[Any], model: Any) -> list[str]:
    from tonnage.render.text import table_lines

    rows = []
    for rule in chosen:
        value = rule.worked(model).value
        rows.append(
            (
                rule.name,
                rule.title,
                _said(value.value, value.unit),
                "erratum" if rule.erratum else "",
                _shortened(rule.printed),
            )
        )
    about = f"worked on {model.name}" if model else "each worked on its document's own example"
    return [
        f"{len(rows)} rules of thumb, {about}",
        "",
        *table_lines(rows, ("rule", "what", "rule says", "", "document prints")),
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _detail(rule: Any, model: Any, formulas: bool) -> list[str]:
    from tonnage.render.text import tree_lines

    worked = rule.worked(model)
    value, exact = worked.value, worked.exact()
    lines = [f"{rule.name} {rule.title}: {_said(value.value, value.unit)}", ""]
    lines += [
        f"  formula   {value.text}",
        f"  put in    {value.formula.substituted(value.inputs)}",
        f"  unrounded {value.value!r} {value.unit}",
    ]
    lines += [f"  source    {value.source}", f"  printed   {rule.printed}"]
    lines += [f"  {label:<40} {_figure(figure, value.unit)}" for label, figure in worked.values.items()]
    if rule.erratum:
        lines.append(f"  ERRATUM   {rule.erratum}")
    if rule.note:
        lines.append(f"  note      {rule.note}")
    return [*lines, "", "exact, beside it:", *tree_lines(exact, depth=99 if formulas else 1, formulas=formulas)]


def _figure(value: float, unit: str) -> str:
    """A labelled figure: bytes both ways; a figure of another unit says so in its label."""
    return _said(value, unit) if unit == "bytes" and abs(value) >= 1e6 else f"{value:,.6g}"


def _said(value: float, unit: str) -> str:
    """Bytes in GB and in GiB, since the documents mix them; everything else as usual."""
    return f"{value / GB:,.2f} GB ({human(value, unit)})" if unit == "bytes" else human(value, unit)
