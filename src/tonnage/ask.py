"""One question in, one document out: the door for faces that speak JSON (HTTP, the page, MCP). A question is a command line, written as an
object: `{"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "sequence_length": "8k"}` of train is `tonnage train llama-3.1-8b --on ...`, read by the
same parser, with the same errors, and answered with the document that `--json` prints (docs/decisions/0017)."""

import re
from argparse import Namespace
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from shlex import quote
from threading import Lock
from types import ModuleType
from typing import Any, NamedTuple

from tonnage.cli import VERBS, face
from tonnage.cli._compare import WHOLE
from tonnage.cli._named import OUTPUT, in_question
from tonnage.cli._options import Option, Parser
from tonnage.cli._print import taken
from tonnage.fields import NO_DEFAULT, POSITIONAL, WHOLE_OBJECTS, fields, takes_lists
from tonnage.kernel import reach
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName, shown
from tonnage.kernel.registry import unknown
from tonnage.search.maximum.whats import NAMES
from tonnage.spelling import meant

ANSWERED = ("train", "serve", "plan", "max", "compare", "rules", "explain", "models", "accelerators", "prices")
SWITCHES = frozenset({"train", "serve", "offline", "api"})  # that have no --no-...
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
LONGEST_NAME = 100  # of a field that anybody means
# The words that choose the forms of a verb that has several.
MODES: dict[str, tuple[tuple[str, ...], ...]] = {"plan": (("--train",), ("--serve",), ("--inventory=pool",)), "compare": (("--serve",), ("--train",)), "max": (("context", "--serve"), ("sequence", "--train"))}  # fmt: skip
FEW = 20  # names that are listed where none is near
_PASTED = {"model": "config.json", "inventory": "inventory.json"}  # the file that stands on a command line for content
_PARSING = Lock()  # argparse changes a parser while it reads words that stand between options


class Asked(NamedTuple):
    """`document`: what --json prints. `status`: the exit status. `words`: the command line that asks the same, without `tonnage`."""

    document: Any
    status: int
    words: tuple[str, ...]


def ask(verb: str, question: Mapping[str, Any], within: reach.Reach = reach.Reach()) -> Asked:  # noqa: B008 - a Reach cannot change
    """Answer a question. Raises TonnageError as the command line does; `within` says what may be read for it."""
    with reach.limited(within), taken() as documents:
        module, arguments, words = parsed(verb, question)
        with in_fields(verb, question, words):
            status = int(module.run(arguments))
    return Asked(documents[-1], status, words)


def training(question: Mapping[str, Any], within: reach.Reach = reach.Reach()) -> tuple[Any, tuple[str, ...]]:  # noqa: B008
    """The answer of `train` to a question, for what is drawn from it and is no part of its document; and the words of its command line. The next
    best moves, which take most of the time of an answer, are left out."""
    with reach.limited(within):
        module, arguments, words = parsed("train", question)
        arguments.advice = False
        with in_fields("train", question, words):
            return module.answer(arguments), words


def parsed(verb: str, question: Mapping[str, Any]) -> tuple[ModuleType, Namespace, tuple[str, ...]]:
    """What answers a question, the arguments that it takes, and the words of the command line."""
    words = command(verb, question)
    module, parser = _face(verb, *_mode_words(verb, words))
    _check(verb, question, parser)
    with _PARSING, in_fields(verb, question, words):
        arguments = parser.parse_args([*words[1:], "--json"])
    for name in WHOLE_OBJECTS:
        if isinstance(question.get(name), Mapping):
            setattr(arguments, name, question[name])
    return module, arguments, words


@contextmanager
def in_fields(verb: str, question: Mapping[str, Any], words: Sequence[str]) -> Iterator[None]:
    """Errors within name fields of the question, where a command line would name its options."""
    try:
        yield
    except TonnageError as error:
        error.args = (in_question(str(error), _face(verb, *_mode_words(verb, words))[1], question),)
        raise


def asked_options(verb: str, words: Sequence[str]) -> list[Option]:
    """The options of the form of a verb that the words ask."""
    _, parser = _face(verb, *_mode_words(verb, words))
    return [action.option for action in parser._actions if hasattr(action, "option")]


def command(verb: str, question: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of the command line that asks this, the verb first."""
    if verb not in ANSWERED:
        raise unknown("verb", verb, ANSWERED)
    if not isinstance(question, Mapping):
        raise InvalidInput(f"a question is an object of names and values. Got {type(question).__name__}.")
    if verb == "max" and question.get("what") is None:
        raise InvalidInput(f"what is needed: the quantity whose maximum is asked for, {', '.join(NAMES)}.")
    if question.get("train") is True and question.get("serve") is True:
        raise InvalidInput("train and serve are two questions: give one. Got both.")
    for name, value in question.items():
        for values in value.values() if name == "vary" and isinstance(value, Mapping) else [value]:
            if isinstance(values, list):
                _check_list(verb, name, values)
    alone: list[str] = []
    for name, verbs in POSITIONAL.items():
        if verb in verbs and question.get(name) is not None:
            values = question[name] if name == "names" else [question[name]]
            alone += [_positional(name, value, verb) for value in _listed(values)]
    options = [word for name, value in question.items() for word in _option(verb, name, value)]
    return (verb, *alone, *options)


def line(words: Sequence[str]) -> str:
    """The command line as a person types it.

    >>> line(("train", "llama-3.1-8b", "--on=8xh100", "--recompute=full"))
    'tonnage train llama-3.1-8b --on 8xh100 --recompute full'
    """
    parted = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    return " ".join(["tonnage", *map(quote, parted)])


def _positional(name: str, value: Any, verb: str) -> str:
    if isinstance(value, Mapping) and name in WHOLE_OBJECTS:
        return _PASTED[name]
    if isinstance(value, Sequence) and not isinstance(value, str) and verb == "compare":
        return ",".join(_text(name, each) for each in value)
    text = _text(name, value)
    if text.startswith("-"):
        raise InvalidInput(f"{name} is a name, and starts with no dash. Got {shown(text)}.")
    return text


def _option(verb: str, name: str, value: Any) -> Iterator[str]:
    if not isinstance(name, str) or not _NAME.match(name):
        near = _meant(verb, name)
        if near:
            raise InvalidInput(f"a field is named as an option of `tonnage {verb}`, with underscores. Got {shown(name)}. Did you mean {near!r}?")  # fmt: skip
        raise InvalidInput(f"a field is named as an option of `tonnage {verb}`, with underscores. Got {shown(name)}.")
    if name in OUTPUT:
        raise InvalidInput(f"{name} says how an answer is shown, and an answer here is its document: leave it out.")
    if verb in POSITIONAL.get(name, ()) or value is None:
        return
    flag = name.replace("_", "-")
    if name == "vary" and isinstance(value, Mapping):
        for option, values in value.items():
            yield f"--vary={option}={_text(name, values)}"
    elif name == "vary" and isinstance(value, list) and value and all("=" in str(each) for each in value):
        for each in value:  # its commas part the values of one option
            yield f"--vary={_text(name, each)}"
    elif isinstance(value, bool):
        if value or name not in SWITCHES:
            yield f"--{flag}" if value else f"--no-{flag}"
    elif isinstance(value, list) and value and all(isinstance(each, bool) for each in value):
        for each in value:
            yield from _option(verb, name, each)
    elif isinstance(value, Mapping) and name in WHOLE_OBJECTS:
        yield f"--{flag}={_PASTED[name]}"
    else:
        yield f"--{flag}={_text(name, value, WHOLE if verb == 'compare' else ())}"


def _text(name: str, value: Any, several: Container[str] = ()) -> str:
    """A value as it is written on a command line. `several`: names whose values have commas themselves, so that semicolons part them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Sequence) and value:
        return (";" if name in several else ",").join("own" if each is None else _text(name, each) for each in value)
    raise InvalidInput(f"{name} takes a number, a text, true, false or a list of these. Got {shown(value)}.")


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _check(verb: str, question: Mapping[str, Any], parser: Parser) -> None:
    """What a command line would refuse in its own words is refused in those of a question: fields, true and false."""
    given: dict[str, str] = {}
    for name, value in question.items():
        if value is None or (value is False and name in SWITCHES):
            continue
        if verb in POSITIONAL.get(name, ()):
            if isinstance(value, list) and not takes_lists(verb, name):
                raise _one_value(name, value)
            continue
        action = parser.takes(name)
        if action is None or action.dest in OUTPUT:
            raise _unknown_field(verb, name, parser)
        before = given.setdefault(action.dest, name)
        if question[before] != value:  # of a command line the later one counts; fields have no order
            raise InvalidInput(
                f"{before} and {name} are two names of one field: give one. Got {shown(question[before])} and {shown(value)}."
            )
        if isinstance(value, list) and not takes_lists(verb, name):
            raise _one_value(name, value)
        each = value if isinstance(value, list) and verb == "compare" else [value]
        if action.nargs == 0 and not all(isinstance(one, bool) for one in each):
            raise InvalidInput(f"{name} is true or false. Got {shown(value)}.")
        if action.nargs != 0 and any(isinstance(one, bool) for one in each):
            raise InvalidInput(f"{name} takes a value, and is not true or false. Got {str(value).lower()}.")


def _check_list(verb: str, name: str, values: list[Any]) -> None:
    """A value of a list is one value; null is one where it is the default of an option that is compared."""
    if any(isinstance(each, list) for each in values):
        raise InvalidInput(f"{name} holds a list within its list: give its values in one. Got {shown(values)}.")
    if None in values and (verb != "compare" or name in NO_DEFAULT) and takes_lists(verb, name):
        raise InvalidInput(f"{name} takes no null in its list: give a value, or leave it out. Got {shown(values)}.")


def _one_value(name: str, value: Any) -> InvalidInput:
    return InvalidInput(f"{name} takes one value, and no list; a question to compare takes lists. Got {shown(value)}.")


def _meant(verb: str, name: Any) -> str:
    """The field that a name with dashes, capitals or blanks stands for; "" where none does."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return ""
    plain = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).lower()).strip("_")
    known = dict.fromkeys(field for words in MODES.get(verb, ((),)) for field in fields(verb, words))
    return plain if plain in known else next(iter(meant(plain, known)), "")


def _unknown_field(verb: str, name: str, parser: Parser) -> UnknownName:
    near = parser.near(name)
    known = {action.dest for action in parser._actions} - OUTPUT
    if near:
        hint = f"Did you mean {' or '.join(map(repr, near))}?"
    elif len(known) <= FEW:
        hint = f"Known: {', '.join(sorted(known))}."
    else:
        hint = f"`tonnage {verb} --help` lists them, with dashes."
    return UnknownName(f"a question to {verb} has no field {shown(name)}. {hint}")


def _mode_words(verb: str, words: Sequence[str]) -> tuple[str, ...]:
    """Of the words, those that choose between the forms of a verb; parsers are kept for each choice."""
    if verb == "max":
        return tuple(word for word in words[1:3] if not word.startswith("-")) + tuple(
            w for w in words if w in ("--serve", "--train")
        )
    modes = ("--train", "--serve", "--api", "refresh")
    return tuple(word for word in words[1:] if word in modes or word.startswith("--inventory"))


@lru_cache(maxsize=64)
def _face(verb: str, *words: str) -> tuple[ModuleType, Parser]:
    return face(verb, words)


assert set(ANSWERED) <= set(VERBS)
assert {*_PASTED} == {*WHOLE_OBJECTS}
