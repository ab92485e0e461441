"""tonnage rules: the rules of thumb of the five source documents."""

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.validation import RulesDocument
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import GB, MIB
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.language.quantities import counted, human
from tonnage.question.given import Given, values
from tonnage.question.subjects.rules import NUMBERS
from tonnage.question.verbs import form_of

HELP = "the rules of thumb, each worked, with its source, its erratum and the exact figure beside it"


OWN = "the document's own"
# Words of the documents and of the people who look for them.
SAME_WORDS = {
    "keys and values": "kv cache",
    "accelerator": "gpu",
    "quantis": "quantiz",
    "16 bit": "fp16 bf16",
    "compute": "flops",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("rules"))
    add_output(parser)


def run(arguments: Given) -> int:
    names = [each.strip() for said in arguments.names for each in said.strip(", ").split(",")]
    chosen = _chosen(names)
    if arguments.like is not None:
        chosen = _alike(chosen, arguments.like)
    show(
        chosen,
        arguments.model,
        values(arguments, NUMBERS),
        as_json=arguments.json,
        formulas=arguments.formulas,
        in_detail=bool(names) and arguments.like is None and not any(_is_part(name) for name in names),
    )
    return 0


def show_rule(name: str, *, as_json: bool, formulas: bool) -> None:
    """Print one rule in detail, on its document's own example."""
    show(_chosen([name]), None, {}, as_json=as_json, formulas=formulas, in_detail=True)


def show(
    chosen: list[Any],
    about: str | Mapping[str, Any] | None,
    given: Mapping[str, Any],
    *,
    as_json: bool,
    formulas: bool,
    in_detail: bool,
) -> None:
    """Print rules, each worked on what it is asked of."""
    cases = _cases(chosen, about, dict(given))
    if as_json:
        print_json(RulesDocument(rules=[case.rule.document(case.model, case.given) for case in cases]))
    elif in_detail:
        details = [_detail(case, formulas) for case in cases]
        print_lines([line for detail in details for line in (*detail, "")][:-1])
    else:
        print_lines(_overview(cases, about is not None))


class Case(NamedTuple):
    """A rule and what it is worked on."""

    rule: Any
    model: Any
    given: Mapping[str, Any]


def _cases(chosen: list[Any], about: str | Mapping[str, Any] | None, given: dict[str, Any]) -> list[Case]:
    """Layers that are given are those of the model that was named, or of the model of a rule's own example. `about`
    may be the content of a config.json.
    """
    from tonnage.models import read

    layers = given.pop("num_hidden_layers", None)
    changes = {} if layers is None else {"num_hidden_layers": layers}
    if about is not None:
        model = read(about, overrides=changes)
        return [Case(rule, model, given) for rule in chosen]
    models: dict[str, Any] = {}
    for name in {rule.example.name_of_model for rule in chosen} if changes else ():
        models[name] = read(name, overrides=changes)
    return [Case(rule, models.get(rule.example.name_of_model), given) for rule in chosen]


def is_rule(name: str) -> bool:
    """Whether a rule is called so, in whatever case."""
    from tonnage import rules

    rules.load()
    return _name(name) in rules.RULES


def _chosen(names: list[str]) -> list[Any]:
    """The rules of these names and parts, each once, in the order in which they were asked for; all without names."""
    from tonnage import rules

    rules.load()
    found: dict[str, Any] = {} if names else dict(rules.RULES)
    for name in names:
        if _is_part(name):
            found |= {key: rule for key, rule in rules.RULES.items() if key.startswith(name.upper())}
        elif len(name) == 1:
            raise unknown("part of the rules", name, rules.DOCUMENTS.upper())
        else:
            if _name(name) not in rules.RULES:
                raise unknown("rule", name, rules.RULES)
            found[_name(name)] = rules.RULES[_name(name)]
    return list(found.values())


def _is_part(name: str) -> bool:
    from tonnage import rules

    return len(name) == 1 and name.lower() in rules.DOCUMENTS


def _name(given: str) -> str:
    """ "a6" and "b1B" are A6 and B1b."""
    return given[:1].upper() + given[1:].lower()


def _alike(chosen: list[Any], words: str) -> list[Any]:
    """The rules whose texts have all of these words, else any of them."""
    wanted = words.lower().replace("-", " ").split()
    if not wanted:
        raise InvalidInput(Message("--like needs words to look for. Got {words}.", words=shown(words)))
    texts = {rule.name: _text(rule) for rule in chosen}
    for needed in (all, any):
        found = [rule for rule in chosen if needed(word in texts[rule.name] for word in wanted)]
        if found:
            return found
    raise InvalidInput(Message("no rule speaks of {words}. `tonnage rules` lists them all.", words=shown(words)))


def _text(rule: Any) -> str:
    """All that a rule says, with the words that people use for the same things."""
    worked = rule.worked()
    formula = worked.value.formula
    parts = (
        rule.name,
        rule.title,
        rule.printed,
        rule.erratum or "",
        rule.note,
        worked.value.name,
        *worked.values,
        formula.name,
        formula.summary,
        formula.assumes,
        formula.source,
    )
    text = " ".join(parts).lower().replace("-", " ")
    return " ".join([text, *(same for word, same in SAME_WORDS.items() if word in text)])


def _overview(cases: list[Case], named: bool) -> list[str]:
    """A line for each rule. `named`: all of them about one model that was named."""
    from tonnage.render.text import table_lines

    rows, header = [], ["rule", "what", say("rule says"), "", say("document prints")]
    model = cases[0].model if named else None
    for rule, on, given in cases:
        value = rule.worked(on, given).value
        erratum = say("erratum") if rule.erratum else ""
        row = [
            rule.name,
            worded(rule.title),
            _said(value.value, value.unit),
            erratum,
            _shortened(worded(rule.printed)),
        ]
        if model:
            row.insert(3, say("document") if "value" in rule.of_document(on, given) else say("model"))
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


def _with(given: Mapping[str, Any], layered: bool) -> str:
    words = [*(["num_hidden_layers"] if layered else []), *given]
    return say(", with {names} as given", names=", ".join(words)) if words else ""


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _detail(case: Case, formulas: bool) -> list[str]:
    from tonnage.render.text import tree_lines

    rule, model, given = case
    worked = rule.worked(model, given)
    value, exact = worked.value, worked.exact()
    own = rule.of_document(model, given)
    other = bool(model or given)
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
