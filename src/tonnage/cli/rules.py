"""tonnage rules: the rules of thumb of the five source documents."""

import argparse
from collections.abc import Mapping
from typing import Any

from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.kernel.units import GB, MIB
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.language.quantities import counted, human
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.rules import Case, asked, chosen, document, is_part, names_of, worked

HELP = "the rules of thumb, each worked, with its source, its erratum and the exact figure beside it"


OWN = "the document's own"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("rules"))
    add_output(parser)


def run(arguments: Given) -> int:
    names = names_of(arguments)
    cases = asked(arguments)
    if arguments.json:
        print_json(document(cases))
    elif names and arguments.like is None and not any(is_part(name) for name in names):
        _print_details(cases, formulas=arguments.formulas)
    else:
        print_lines(_overview(cases, arguments.model is not None))
    return 0


def print_rule(name: str, *, formulas: bool) -> None:
    """One rule in detail, on its document's own example."""
    _print_details(worked(chosen([name]), None, {}), formulas=formulas)


def _print_details(cases: list[Case], *, formulas: bool) -> None:
    details = [_detail(case, formulas) for case in cases]
    print_lines([line for detail in details for line in (*detail, "")][:-1])


def _overview(cases: list[Case], named: bool) -> list[str]:
    """A line for each rule. `named`: all of them about one model that was named."""
    from tonnage.render.text import table_lines

    rows, header = [], ["rule", "what", say("rule says"), "", say("document prints")]
    model = cases[0].model if named else None
    for rule, on, options in cases:
        value = rule.worked(on, options).value
        erratum = say("erratum") if rule.erratum else ""
        row = [
            rule.name,
            worded(rule.title),
            _said(value.value, value.unit),
            erratum,
            _shortened(worded(rule.printed)),
        ]
        if model:
            row.insert(3, say("document") if "value" in rule.of_document(on, options) else say("model"))
        rows.append(row)
    if model:
        header[3:] = [say("numbers of"), "", say("document prints, of its own example")]
    about = (
        say("worked on {name} as far as their numbers are a model's", name=model.name)
        if model
        else say("each worked on its document's own example") + _with(cases[0].given, any(case.model for case in cases))
    )
    count = counted(len(rows), "rules of thumb") if len(rows) != 1 else say("1 rule of thumb")
    return [f"{count}{say(', ')}{about}", "", *table_lines(rows, header)]


def _with(options: Mapping[str, Any], layered: bool) -> str:
    words = [*(["num_hidden_layers"] if layered else []), *options]
    return say(", with {names} as given", names=", ".join(words)) if words else ""


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _detail(case: Case, formulas: bool) -> list[str]:
    from tonnage.render.text import tree_lines

    rule, model, options = case
    worked = rule.worked(model, options)
    value, exact = worked.value, worked.exact()
    own = rule.of_document(model, options)
    other = bool(model or options)
    lines = [f"{rule.name} {worded(rule.title)}{say(': ')}{_said(value.value, value.unit)}", ""]
    lines += [
        f"  {left(say('formula'), 9)} {value.text}",
        f"  {left(say('put in'), 9)} {value.formula.substituted(value.inputs)}",
    ]
    if other:
        lines += [
            f"    {letter:<7} {number:<22,.15g} {_whose(letter, own, case)}" for letter, number in value.inputs.items()
        ]
    lines += [
        f"  {left(say('unrounded'), 9)} {value.value!r} {say(value.unit)}",
        f"  {left(say('source'), 9)} {worded(value.source)}",
    ]
    of_own = say(" (of its own example)") if other else ""
    lines += [f"  {left(say('printed'), 9)} {worded(rule.printed)}{of_own}"]
    for label, figure in worked.values.items():
        whose = f"  {_whose(label, own, case)}" if other else ""
        lines.append(f"  {left(worded(label), 40)} {_figure(figure, value.unit)}{whose}")
    if rule.erratum:
        lines.append(f"  {left(say('ERRATUM'), 9)} {worded(rule.erratum)}")
    lines += [f"  {left(say('note'), 9)} {worded(note)}" for note in (rule.note, worked.note) if note]
    lines += ["", say("exact, beside it:"), *tree_lines(exact, depth=99 if formulas else 1, formulas=formulas)]
    return [*lines, *_variants(worked.variants())]


def _variants(variants: list[dict[str, Any]]) -> list[str]:
    """A program's memory after each stage, allocated / reserved, as it was measured and under other profiles."""
    from tonnage.render.text import table_lines

    if not variants:
        return []
    header = (say("MiB, traced"), *(worded(stage["stage"]) for stage in variants[0]["stages"]))
    rows = [
        (
            f"{worded(variant['name'])} ({variant['profile']})",
            *(
                f"{stage['allocated_bytes'] / MIB:.2f} / {stage['reserved_bytes'] / MIB:.2f}"
                for stage in variant["stages"]
            ),
        )
        for variant in variants
    ]
    return [
        "",
        say("allocated / reserved after each stage, replayed without a GPU (tonnage trace e5):"),
        *table_lines(rows, header),
    ]


def _whose(label: str, own: frozenset[str], case: Case) -> str:
    """Whether a number is the document's own, the model's, or comes of what was given."""
    from tonnage.rules import GIVEN

    if label in own:
        return say(OWN)
    if label in {GIVEN.get(name) for name in case.given}:
        return say("given")
    return say("worked on {name}", name=case.model.name) if case.model else say("by what is given")


def _figure(value: float, unit: str) -> str:
    """A labelled figure: bytes both ways; a figure of another unit says so in its label."""
    return _said(value, unit) if unit == "bytes" and abs(value) >= 1e6 else f"{value:,.6g}"


def _said(value: float, unit: str) -> str:
    """Bytes in GB and in GiB, since the documents mix them; everything else as usual."""
    return f"{value / GB:,.2f} GB ({human(value, unit)})" if unit == "bytes" else human(value, unit)
