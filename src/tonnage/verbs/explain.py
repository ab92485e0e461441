"""`explain`: a formula, a symbol of the formulas, a word of the answers, an option, a source or a rule."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path

from msgspec import structs

from tonnage import formulas
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
from tonnage.question.form import Given
from tonnage.question.option import Option
from tonnage.question.subjects.model import ADVICE
from tonnage.question.subjects.money import SERVED
from tonnage.question.verbs import form_of, model_groups
from tonnage.rules import RULES
from tonnage.verbs import rules
from tonnage.verbs.answered import Answered

Explained = FormulaDocument | SymbolDocument | WordDocument | SourceDocument


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

    known = found(name)
    if known is None:
        long_names = (symbol.name for symbol in SYMBOLS.values())
        raise unknown(
            "formula, symbol, word, option, source or rule",
            name,
            [*FORMULAS, *SYMBOLS, *long_names, *WORDS, *_options(), *references(), *RULES],
        )
    return known


def found(name: str) -> Explained | None:
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
    of_model = {known.name for group in model_groups() for known in group.options}
    as_of_train = {known.name for known in (*SERVED, ADVICE)}  # of serve: explained by train's
    by_name: dict[str, dict[str, Option]] = {}
    for verb, excluded in (("train", of_model), ("serve", (of_model | as_of_train))):
        for option in form_of(verb).options.values():
            if option.name not in excluded:
                by_name.setdefault(option.name, {})[verb] = option
    return by_name


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
    is_same = len(set(helps.values())) == 1
    meaning = helps[next(iter(helps))] if is_same else "; ".join(f"{verb}: {text}" for verb, text in helps.items())
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


def names() -> NamesDocument:
    """Everything that can be explained, but options."""
    from tonnage.kernel.references import references

    return NamesDocument(formulas=formula_names(), symbols=list(SYMBOLS), words=list(WORDS), sources=list(references()))


def answer(arguments: Given) -> Answered:
    """What a name is: a formula, a symbol, a word, an option, a source or a rule; without a name all names."""
    load_formulas()
    if arguments.name is None:
        return Answered(names())
    if is_explained_by_rule(arguments.name):
        return Answered(rules.document(rules.worked(rules.chosen([arguments.name]), None, {})))
    return Answered(explain(arguments.name))


def is_explained_by_rule(name: str) -> bool:
    """Whether a name is that of a rule of thumb and of nothing else."""
    return found(name) is None and rules.is_rule(name)
