"""`compare`: one matrix of answers of `serve` or `train`."""

from collections.abc import Iterable
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import option_name
from tonnage.kernel.reach import is_there
from tonnage.question.command_line import OWN
from tonnage.question.form import CHOOSING, WHOLE, Form, Given, spelled, values
from tonnage.question.option import Option
from tonnage.question.subjects.comparison import COUNT, TABLE
from tonnage.question.subjects.model import DIMENSIONS, MACHINE, ON
from tonnage.question.verbs import form_of, model_groups
from tonnage.verbs.answered import DocumentedAnswer


def compared(form: Form) -> tuple[Option, ...]:
    """The options of a verb whose answers are compared: not its model and machine, nor how the table is shown."""
    excluded = {option.name for group in model_groups() for option in group.options} | {
        option.name for option in (*MACHINE, *TABLE)
    }
    return tuple(option for name, option in form.options.items() if name not in excluded and name not in CHOOSING)


def _models(arguments: Given) -> Any:
    """The models by name; a file whose name has a comma is one model."""
    from tonnage.search.compare.axes import axis

    text = arguments.model
    if text is None:
        return axis("model", [None], ["dimensions"])
    if not isinstance(text, str):  # the content of a config.json
        return axis("model", [text], ["pasted config"])
    names = [text] if is_there(text) else _split(text, ",", "MODEL")
    return axis("model", names)


def axes(arguments: Given, options: Iterable[Option]) -> list[Any]:
    """An axis for each option that was given."""
    from tonnage.search.compare.axes import axis

    all_axes = []
    for option in options:
        value = getattr(arguments, option.name)
        if value is None:
            continue
        name = {"reserve": "reserve_bytes", "family": "model_type"}.get(option.name, option.name)
        if option.read is None:
            all_axes.append(axis(name, value))
            continue
        flag = spelled(arguments, option)
        texts = _split(value, ";" if option.name in WHOLE else ",", flag)
        read = [_read(option, text, flag) for text in texts]
        all_axes.append(axis(name, read, texts if name == "on" else ()))
    return all_axes


def _read(option: Option, text: str, flag: str) -> Any:
    if text.lower() == OWN and option.name != "on":
        return None
    if text[:1] == "0" and text.isdecimal() and len(text) > 1:
        raise InvalidInput(
            "{flag} takes values with commas between them, and numbers without any. Got {text}.",
            flag=option_name(flag),
            text=shown(text),
        )
    return option.read(text, flag) if option.read else text


def _split(text: str, between: str, what: str) -> list[str]:
    texts = [part.strip() for part in text.split(between)]
    if not all(texts):
        raise InvalidInput("{what} has an empty value in {text}.", what=option_name(what), text=shown(text))
    return texts


def _reader(arguments: Given) -> Any:
    from tonnage.models import read

    return lambda name, changes: read(name, overrides=changes, revision=arguments.revision, offline=arguments.offline)


def shown_columns(arguments: Given) -> list[str]:
    """The columns that --show names."""
    return [column.strip() for column in values(arguments, TABLE[1:]).get("show", "").split(",") if column.strip()]


def answer(arguments: Given, verb: str) -> DocumentedAnswer:
    """The table, of which documents and texts are made."""
    from tonnage.catalogue.clusters import says_how_many
    from tonnage.search.compare import compare

    models, changes = _models(arguments), axes(arguments, DIMENSIONS)
    places = axes(arguments, MACHINE)
    if not places or places[0].name != "on":
        raise InvalidInput("{--on} is needed: {help}.", help=ON.help)
    counts = axes(arguments, (COUNT,))
    if counts and all(says_how_many(str(on)) for on in places[0].values):
        raise InvalidInput(
            "{--count} is of machines that do not say how many: leave it out. Got {--on} {on}.", on=arguments.on
        )
    every = [models, *changes, *places, *counts, *axes(arguments, compared(form_of("compare", verb)))]
    return compare(
        verb,
        every,
        _reader(arguments),
        of_model={option.name for option in changes},
        sort=values(arguments, TABLE[1:]).get("sort", ""),
        show=shown_columns(arguments),
    )
