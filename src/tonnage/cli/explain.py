"""tonnage explain: a formula, a symbol of the formulas, a word of the answers, an option, or a source."""

import argparse
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import structs

from tonnage import formulas
from tonnage.cli import rules
from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.document import builtins
from tonnage.documents.explain import (
    FormulaDocument,
    KeyedReference,
    LetterDocument,
    NamesDocument,
    SourceDocument,
    SymbolDocument,
    WordDocument,
)
from tonnage.kernel.formula import FORMULAS, Formula
from tonnage.kernel.glossary import SYMBOLS, WORDS, Symbol, Word
from tonnage.kernel.message import Message, joined
from tonnage.kernel.registry import letters_of, unknown
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.question.given import Given
from tonnage.question.option import Option
from tonnage.question.subjects.advice import ADVICE
from tonnage.question.subjects.money import SERVED
from tonnage.question.verbs import form_of, model_groups
from tonnage.rules import RULES

HELP = (
    "a formula, a symbol of the formulas, a word of the answers, an option, a source or a rule of thumb: text, "
    "unit, meaning, where it comes from"
)

Explained = FormulaDocument | SymbolDocument | WordDocument | SourceDocument
SAID = ("unit", "meaning", "assumes", "basis", "source", "where")  # words, of what is listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("explain"))
    add_output(parser)


def run(arguments: Given) -> int:
    load_formulas()
    if arguments.name is None:
        return _list(arguments.json)
    if _found(arguments.name) is None and rules.is_rule(arguments.name):
        rules.show_rule(arguments.name, as_json=arguments.json, formulas=arguments.formulas)
        return 0
    document = explain(arguments.name)
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(builtins(document)))
    return 0


def load_formulas() -> None:
    """Import every file of formulas."""
    for path in sorted(Path(formulas.__path__[0]).glob("[!_]*.py")):
        import_module(f"tonnage.formulas.{path.stem}")


def formula_names() -> list[str]:
    """All of them, file by file, whatever was imported first."""
    load_formulas()
    return sorted(FORMULAS, key=lambda name: FORMULAS[name].evaluate.__module__)


def explain(name: str) -> Explained:
    """The document about one name."""
    from tonnage.kernel.references import references

    found = _found(name)
    if found is None:
        long_names = (symbol.name for symbol in SYMBOLS.values())
        raise unknown(
            "formula, symbol, word, option, source or rule",
            name,
            [*FORMULAS, *SYMBOLS, *long_names, *WORDS, *_options(), *references(), *RULES],
        )
    return found


def _found(name: str) -> Explained | None:
    """What is called so: to the letter, else, of words and formulas, however it is written."""
    from tonnage.kernel.references import reference, references

    by_long_name = {symbol.name: symbol for symbol in SYMBOLS.values()}
    if name in FORMULAS:
        return _formula(FORMULAS[name])
    if name in SYMBOLS or name in by_long_name:
        return _symbol(SYMBOLS.get(name) or by_long_name[name])
    if name in references():
        return SourceDocument(kind="source", name=name, **structs.asdict(reference(name)))
    plain = letters_of(name)
    for word in WORDS.values():
        if plain in map(letters_of, (word.name, *word.also)):
            return _word(word)
    formulas_and_options: Iterator[Explained] = chain(
        (_formula(formula) for formula in FORMULAS.values() if letters_of(formula.name) == plain),
        (_option(known) for option, known in _options().items() if letters_of(option) == plain),
    )
    return next(formulas_and_options, None)


@cache
def _options() -> dict[str, dict[str, Option]]:
    """Every option of the verbs whose answers print its name -> what it is to each of them."""
    of_model = {each.name for group in model_groups() for each in group.options}
    as_of_train = {each.name for each in (*SERVED, ADVICE)}  # of serve: explained by train's
    found: dict[str, dict[str, Option]] = {}
    for verb, beside in (("train", of_model), ("serve", (of_model | as_of_train))):
        for option in form_of(verb).options.values():
            if option.name not in beside:
                found.setdefault(option.name, {})[verb] = option
    return found


def _word(word: Word) -> WordDocument:
    return WordDocument(kind="word", **structs.asdict(word))


def _option(known: dict[str, Option]) -> WordDocument:
    """An option as a word of the answers, by its help."""
    first = next(iter(known.values()))
    helps = {
        verb: Message("{help} (default: {default})", help=option.help, default=option.default)
        if option.default
        else option.help
        for verb, option in known.items()
    }
    alike = len(set(helps.values())) == 1
    meaning = helps[next(iter(helps))] if alike else "; ".join(f"{verb}: {said}" for verb, said in helps.items())
    word = Word(
        first.name,
        first.unit,
        meaning,
        Message("option {flag} of {known}", flag=first.flag, known=joined(" and ", known)),
        (),
    )
    return _word(word)


def _formula(formula: Formula) -> FormulaDocument:
    from tonnage.kernel.references import cited, reference

    return FormulaDocument(
        kind="formula",
        name=formula.name,
        text=formula.text,
        unit=formula.unit,
        meaning=formula.summary,
        assumes=formula.assumes,
        basis=formula.basis,
        source=formula.source,
        symbols=[letter_of(SYMBOLS[letter]) for letter in formula.symbols],
        references=[KeyedReference(key=key, **structs.asdict(reference(key))) for key in cited(formula.source)],
    )


def _symbol(symbol: Symbol) -> SymbolDocument:
    users = sorted(formula.name for formula in FORMULAS.values() if symbol.letter in formula.symbols)
    return SymbolDocument(kind="symbol", name=symbol.letter, formulas=users, **structs.asdict(letter_of(symbol)))


def letter_of(symbol: Symbol) -> LetterDocument:
    """A letter of the formulas, as documents have it."""
    return LetterDocument(letter=symbol.letter, long_name=symbol.name, unit=symbol.unit, meaning=symbol.meaning)


def _list(as_json: bool) -> int:
    from tonnage.kernel.references import references

    document = NamesDocument(
        formulas=formula_names(), symbols=list(SYMBOLS), words=list(WORDS), sources=list(references())
    )
    if as_json:
        print_json(document)
    else:
        names = structs.asdict(document)
        print_lines([f"{say(kind)}{say(': ')}{', '.join(each)}" for kind, each in names.items()])
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
