"""From a question, names and values as JSON has them, to what its verb answers. There is no command line in between."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName, shown
from tonnage.kernel.message import Message, joined, listed, option_name
from tonnage.kernel.registry import unknown
from tonnage.question.command_line import text_of, values_to_vary, words_alone
from tonnage.question.form import CHOOSING, CONTENTS, SWITCHES, WHOLE, Form, Given
from tonnage.question.naming import in_question
from tonnage.question.option import Option
from tonnage.question.owners import other_verb_sentence
from tonnage.question.subjects.maximum import NAMES
from tonnage.question.verbs import FORMS, form_of, forms_of, kind_of
from tonnage.spelling import meant, ours

# How an answer is shown, and files that it is written to: no part of a question.
OUTPUT = frozenset(
    {"json", "formulas", "plot", "csv", "markdown", "html", "parquet", "help", "help_all", "out", "lang"}
)
NO_DEFAULT = frozenset({"model", "on"})  # what a question says itself: no null of a list stands for it
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
LONGEST_NAME = 100  # of a field that anybody means
FEW = 20  # names that are listed where none is near


SHOWN = {
    "json": True,
    "formulas": False,
    "html": None,
    "markdown": None,
    "plot": None,
}  # of an answer that is a document


class Read(NamedTuple):
    """A question, its form and which of the verb's forms that is, and what was given."""

    question: Mapping[str, Any]
    form: Form
    kind: str
    given: Given


def read(verb: str, question: Mapping[str, Any]) -> Read:
    """What a question gives to its verb. InvalidInput names a wrong field, UnknownName one that does not exist."""
    _check_shape(verb, question)
    kind = kind_of(verb, question)
    form = form_of(verb, kind)
    arguments = Given(**dict.fromkeys(form.options), **SHOWN)
    for option in form.options.values():
        if option.many or option.repeated:
            setattr(arguments, option.name, [])
    texts = {name: _written(form, name, value) for name, value in question.items() if value is not None}
    arguments.typed = _typed(form, question)
    for name, option in _named(form, question):
        setattr(arguments, option.name, texts[name])
    return Read(question, form, kind, arguments)


def read_field(form: Form, name: Any, value: Any) -> tuple[Option, Any] | None:
    """The option that one field gives and its text, as `read` does of all; None where it gives none."""
    _check_field(form.verb, name, value)
    named = list(_named(form, {name: value}))
    return (named[0][1], _written(form, name, value)) if named else None


def near_fields(form: Form, name: Any) -> list[str]:
    """Fields that a name which is none may stand for, the likeliest first."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return []
    return meant(name, form.of_face("json"), alike=not other_verb_sentence(name, form))


@contextmanager
def in_fields(read: Read) -> Iterator[None]:
    """Errors within name fields of the question, where a command line would name its options."""
    try:
        yield
    except TonnageError as error:
        error.args = (in_question(error, read.form, read.question),)
        raise


def _check_shape(verb: str, question: Mapping[str, Any]) -> None:
    """What is wrong with a question whatever its options are."""
    if verb not in FORMS:
        raise unknown("verb", verb, FORMS)
    if not isinstance(question, Mapping):
        raise InvalidInput("a question is an object of names and values. Got {type}.", type=type(question).__name__)
    if verb == "max" and question.get("what") is None:
        raise InvalidInput("{@what} is needed: the quantity whose maximum is asked for, {names}.", names=listed(NAMES))
    if question.get("train") is True and question.get("serve") is True:
        raise InvalidInput("train and serve are two questions: give one. Got both.")
    for name, value in question.items():
        _check_field(verb, name, value)


def _check_field(verb: str, name: Any, value: Any) -> None:
    """What is wrong with a field whatever its option is."""
    several = list(value.values()) if isinstance(value, Mapping) and name == "vary" else [value]
    for values in several:
        if isinstance(values, list):
            _check_list(forms_of(verb), name, values)
    _check_name(verb, name)


def _check_list(forms: tuple[Form, ...], name: str, values: list[Any]) -> None:
    """A value of a list is one value; null is one where it is the default of an option that is compared."""
    if any(isinstance(item, list) for item in values):
        raise InvalidInput(
            "{name} holds a list within its list: give its values in one. Got {values}.",
            name=option_name(name),
            values=shown(values),
        )
    form = forms[0]
    if None in values and (not form.axes or name in NO_DEFAULT) and form.takes_lists(name):
        raise InvalidInput(
            "{name} takes no null in its list: give a value, or leave it out. Got {values}.",
            name=option_name(name),
            values=shown(values),
        )


def _check_name(verb: str, name: Any) -> None:
    if not isinstance(name, str) or not _NAME.match(name):
        near = _meant(verb, name)
        if near:
            raise InvalidInput(
                "a field is named as an option of `tonnage {verb}`, with underscores. Got {name}. Did "
                "you mean {near!r}?",
                verb=verb,
                name=shown(name),
                near=near,
            )
        raise InvalidInput(
            "a field is named as an option of `tonnage {verb}`, with underscores. Got {name}.",
            verb=verb,
            name=shown(name),
        )
    if name in OUTPUT:
        raise InvalidInput(
            "{name} says how an answer is shown, and an answer here is its document: leave it out.",
            name=option_name(name),
        )


def _written(form: Form, name: str, value: Any) -> Any:
    """A value as its option's reader takes it: a text; true or false of a switch; the content of a file."""
    option = form.options.get(name)
    if option is not None and option.alone:
        if isinstance(value, Mapping) and name in CONTENTS:
            return value
        words = words_alone(form, name, value)
        return words if option.many else words[0]
    if name == "vary":
        several = values_to_vary(value)
        if several is not None:
            return several if option is not None and option.repeated else several[-1]
        return [text_of(name, value)] if option is not None and option.repeated else text_of(name, value)
    if isinstance(value, bool):
        return [value] if form.axes and _is_switch(form, name) else value
    if isinstance(value, list) and value and all(isinstance(item, bool) for item in value):
        return value if _is_switch(form, name) else value[-1]
    if isinstance(value, Mapping) and name in CONTENTS:
        return value
    return text_of(name, value, WHOLE if form.axes else ())


def _is_switch(form: Form, name: str) -> bool:
    """Whether it is true, false or both of them in a comparison."""
    option = form.options.get(name)
    return option is not None and option.negatable and name not in CHOOSING


def _named(form: Form, question: Mapping[str, Any]) -> Iterator[tuple[str, Option]]:
    """The fields that have a value, with the option that each names."""
    for name, value in question.items():
        if value is None or (value is False and name in SWITCHES):
            continue
        option = _find(form, name)
        if option is None or "json" not in option.faces:
            raise _unknown_field(form, name)
        if isinstance(value, list) and not form.takes_lists(name):
            raise InvalidInput(
                "{name} takes one value, and no list; a question to compare takes lists. Got {value}.",
                name=option_name(name),
                value=shown(value),
            )
        if not option.alone:
            _check_switch(form, name, option, value)
        yield name, option


def _check_switch(form: Form, name: str, option: Option, value: Any) -> None:
    items = value if isinstance(value, list) and form.axes else [value]
    if option.read is None and not all(isinstance(one, bool) for one in items):
        raise InvalidInput("{name} is true or false. Got {value}.", name=option_name(name), value=shown(value))
    if option.read is not None and any(isinstance(one, bool) for one in items):
        raise InvalidInput(
            "{name} takes a value, and is not true or false. Got {value}.",
            name=option_name(name),
            value=str(value).lower(),
        )


def _typed(form: Form, question: Mapping[str, Any]) -> dict[str, str]:
    """Option -> the field that gives it. InvalidInput where two fields of different values name one option."""
    fields: dict[str, str] = {}
    for name, option in _named(form, question):
        before = fields.setdefault(option.name, name)
        if (
            before != name and question[before] != question[name]
        ):  # of a command line the later one counts; fields have no order
            raise InvalidInput(
                "{before} and {name} are two names of one field: give one. Got {question} and {question2}.",
                before=option_name(before),
                name=option_name(name),
                question=shown(question[before]),
                question2=shown(question[name]),
            )
    return fields


def _find(form: Form, name: str) -> Option | None:
    """The option that a field names, or None. InvalidInput for an option of another tool that means something else."""
    option = form.options.get(name)
    if option is not None and option.alone:
        return option
    try:
        (flag,) = ours([f"--{name.replace('_', '-')}"], form.flags, form.reads_as)
    except InvalidInput as error:
        raise InvalidInput(in_question(error, form, {name: None})) from None
    known = form.flags.get(flag)
    return None if known is None or (flag.startswith("--no-") and flag != known.flag) else known


def _meant(verb: str, name: Any) -> str:
    """The field that a name with dashes, capitals or blanks stands for; "" where none does."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return ""
    plain = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).lower()).strip("_")
    known = dict.fromkeys(name for form in forms_of(verb) for name in form.of_face("json"))
    return plain if plain in known else next(iter(meant(plain, known)), "")


def _unknown_field(form: Form, name: str) -> UnknownName:
    known = form.of_face("json")
    other_verb = other_verb_sentence(name, form)
    near = meant(name, known, alike=not other_verb)
    if other_verb:
        hints = [Message("Did you mean {near}?", near=joined(" or ", map(repr, near)))] if near else []
        return UnknownName(joined(" ", (other_verb, *hints)))
    if near:
        hint: str = Message("Did you mean {near}?", near=joined(" or ", map(repr, near)))
    elif len(known) <= FEW:
        hint = Message("Known: {names}.", names=listed(sorted(known)))
    else:
        hint = Message("`tonnage {verb} --help-all` lists them, with dashes.", verb=form.verb)
    return UnknownName(
        Message("a question to {verb} has no field {name}. {hint}", verb=form.verb, name=shown(name), hint=hint)
    )
