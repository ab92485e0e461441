"""tonnage rules: the rules of thumb of the five source documents."""

import argparse
from typing import Any

from tonnage.cli import _options as o
from tonnage.cli._print import print_json, print_lines
from tonnage.document import SCHEMA
from tonnage.errors import InvalidInput
from tonnage.registry import unknown
from tonnage.units import GB, human

HELP = "the rules of thumb, each worked, with its source, its erratum and the exact figure beside it"
OWN = "the document's own"
# Words of the documents and of the people who look for them.
SAME_WORDS = {
    "keys and values": "kv cache", "accelerator": "gpu", "quantis": "quantiz", "16 bit": "fp16 bf16", "compute": "flops",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="rules, such as A6 or B1b, or parts: A is all of document A; none: all"
    )
    parser.add_argument("--like", metavar="WORDS", help='only rules that speak of this, such as "kv cache"')
    parser.add_argument(
        "--model", metavar="MODEL", help="work the rules on this model instead of the documents' own examples"
    )
    o.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    show(arguments.names, arguments.like, arguments.model, as_json=arguments.json, formulas=arguments.formulas)
    return 0


def show(names: list[str], like: str | None, about: str | None, *, as_json: bool, formulas: bool) -> None:
    """Print the chosen rules: those that are named in detail, a part of the documents as a table."""
    chosen = _chosen(names)
    if like is not None:
        chosen = _alike(chosen, like)
    model = None
    if about:
        from tonnage.models import read

        model = read(about)
    if as_json:
        print_json({"schema": SCHEMA, "rules": [rule.to_dict(model) for rule in chosen]})
    elif names and like is None and not any(_is_part(name) for name in names):
        details = [_detail(rule, model, formulas) for rule in chosen]
        print_lines([line for detail in details for line in (*detail, "")][:-1])
    else:
        print_lines(_overview(chosen, model))


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
            rule = rules.RULES[_name(name)]
            found[rule.name] = rule
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
        raise InvalidInput(f"--like needs words to look for. Got {words!r}.")
    texts = {rule.name: _text(rule) for rule in chosen}
    for needed in (all, any):
        found = [rule for rule in chosen if needed(word in texts[rule.name] for word in wanted)]
        if found:
            return found
    raise InvalidInput(f"no rule speaks of {words!r}. `tonnage rules` lists them all.")


def _text(rule: Any) -> str:
    """All that a rule says, with the words that people use for the same things."""
    worked = rule.worked()
    formula = worked.value.formula
    parts = (rule.name, rule.title, rule.printed, rule.erratum or "", rule.note, worked.value.name, *worked.values, formula.name,
             formula.summary, formula.assumes, formula.source)  # fmt: skip
    text = " ".join(parts).lower().replace("-", " ")
    return " ".join([text, *(same for word, same in SAME_WORDS.items() if word in text)])


def _overview(chosen: list[Any], model: Any) -> list[str]:
    from tonnage.render.text import table_lines

    rows, header = [], ["rule", "what", "rule says", "", "document prints"]
    for rule in chosen:
        value = rule.worked(model).value
        erratum = "erratum" if rule.erratum else ""
        row = [rule.name, rule.title, _said(value.value, value.unit), erratum, _shortened(rule.printed)]
        if model:
            row.insert(3, "document" if "value" in rule.of_document(model) else "model")
        rows.append(row)
    if model:
        header[3:] = ["numbers of", "", "document prints, of its own example"]
    about = (
        f"worked on {model.name} as far as their numbers are a model's"
        if model
        else "each worked on its document's own example"
    )
    count = f"{len(rows)} rule{'s' if len(rows) > 1 else ''} of thumb"
    return [f"{count}, {about}", "", *table_lines(rows, header)]


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _detail(rule: Any, model: Any, formulas: bool) -> list[str]:
    from tonnage.render.text import tree_lines

    worked = rule.worked(model)
    value, exact = worked.value, worked.exact()
    own = rule.of_document(model)
    lines = [f"{rule.name} {rule.title}: {_said(value.value, value.unit)}", ""]
    lines += [f"  formula   {value.text}", f"  put in    {value.formula.substituted(value.inputs)}"]
    if model:
        lines += [
            f"    {letter:<7} {number:<22,.15g} {_whose(letter, own, model)}" for letter, number in value.inputs.items()
        ]
    lines += [f"  unrounded {value.value!r} {value.unit}", f"  source    {value.source}"]
    lines += [f"  printed   {rule.printed}{' (of its own example)' if model else ''}"]
    for label, figure in worked.values.items():
        whose = f"  {_whose(label, own, model)}" if model else ""
        lines.append(f"  {label:<40} {_figure(figure, value.unit)}{whose}")
    if rule.erratum:
        lines.append(f"  ERRATUM   {rule.erratum}")
    lines += [f"  note      {note}" for note in (rule.note, worked.note) if note]
    return [*lines, "", "exact, beside it:", *tree_lines(exact, depth=99 if formulas else 1, formulas=formulas)]


def _whose(label: str, own: frozenset[str], model: Any) -> str:
    """Whether a number is the document's own or the model's."""
    return OWN if label in own else f"worked on {model.name}"


def _figure(value: float, unit: str) -> str:
    """A labelled figure: bytes both ways; a figure of another unit says so in its label."""
    return _said(value, unit) if unit == "bytes" and abs(value) >= 1e6 else f"{value:,.6g}"


def _said(value: float, unit: str) -> str:
    """Bytes in GB and in GiB, since the documents mix them; everything else as usual."""
    return f"{value / GB:,.2f} GB ({human(value, unit)})" if unit == "bytes" else human(value, unit)
