"""The command line that asks what a question asks."""

from collections.abc import Container, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import option_name
from tonnage.question.form import CONTENTS, SWITCHES, WHOLE, Form

OWN = "own"  # of a comparison: the default of an option
PASTED = {"model": "config.json", "inventory": "inventory.json"}  # the file that stands for content
assert {*PASTED} == {*CONTENTS}


def command(form: Form, question: Mapping[str, Any]) -> tuple[str, ...]:
    """Its words, the verb first, without `tonnage`."""
    alone = [
        word
        for option in form.options.values()
        if option.alone and question.get(option.name) is not None
        for word in words_alone(form, option.name, question[option.name])
    ]
    pairs = [(name, value) for name, value in question.items() if not _is_alone(form, name)]
    return (form.verb, *alone, *(word for name, value in pairs for word in _words(form, name, value)))


def line(words: Sequence[str]) -> str:
    """The command line as a person types it.

    >>> line(("train", "llama-3.1-8b", "--on=8xh100", "--recompute=full"))
    'tonnage train llama-3.1-8b --on 8xh100 --recompute full'
    """
    parted = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    return " ".join(["tonnage", *map(quote, parted)])


def words_alone(form: Form, name: str, value: Any) -> list[str]:
    """The words that stand for a value without its name."""
    if isinstance(value, Mapping) and name in CONTENTS:
        return [PASTED[name]]
    if form.axes and isinstance(value, list | tuple):
        return [text_of(name, value)]
    several = value if form.options[name].many and isinstance(value, list | tuple) else [value]
    words = [text_of(name, item) for item in several]
    for word in words:
        if word.startswith("-"):
            raise InvalidInput(
                "{name} is a name, and starts with no dash. Got {word}.", name=option_name(name), word=shown(word)
            )
    return words


def text_of(name: str, value: Any, several: Container[str] = ()) -> str:
    """A value as people write it, a list with commas between; with semicolons for the names of `several`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Sequence) and value:
        return (";" if name in several else ",").join(OWN if item is None else text_of(name, item) for item in value)
    if isinstance(value, Sequence):
        raise InvalidInput("{name} is an empty list: give it a value, or leave it out.", name=option_name(name))
    raise InvalidInput(
        "{name} takes a number, a text, true, false or a list of these. Got {value}.",
        name=option_name(name),
        value=shown(value),
    )


def values_to_vary(value: Any) -> list[str] | None:
    """OPTION=VALUE,VALUE for each option that `vary` has; None where it is a text, or a list of names."""
    if isinstance(value, Mapping):
        return [f"{option}={text_of('vary', values)}" for option, values in value.items()]
    if isinstance(value, list) and value and all("=" in str(item) for item in value):
        return [text_of("vary", item) for item in value]  # its commas part the values of one option
    return None


def _is_alone(form: Form, name: str) -> bool:
    option = form.options.get(name)
    return option is not None and option.alone


def _words(form: Form, name: str, value: Any) -> Iterator[str]:
    if value is None:
        return
    flag = name.replace("_", "-")
    if name == "vary" and (texts := values_to_vary(value)) is not None:
        yield from (f"--vary={text}" for text in texts)
    elif isinstance(value, bool):
        if value or name not in SWITCHES:
            yield f"--{flag}" if value else f"--no-{flag}"
    elif isinstance(value, list) and value and all(isinstance(item, bool) for item in value):
        for item in value:
            yield from _words(form, name, item)
    elif isinstance(value, Mapping) and name in CONTENTS:
        yield f"--{flag}={PASTED[name]}"
    else:
        yield f"--{flag}={text_of(name, value, WHOLE if form.axes else ())}"
