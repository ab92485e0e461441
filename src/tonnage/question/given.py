"""What was given in a question: text or value of each option, and how each was named."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, option_name
from tonnage.question.option import Option


class Given(SimpleNamespace):
    """An attribute for each option: its text, of a switch its value; None where it was not given.

    `typed`: option -> the name by which it was given.
    """

    typed: Mapping[str, str] = {}


def values(given: Given, options: Iterable[Option]) -> dict[str, Any]:
    """The options that were given, read; an error names the option."""
    found = {}
    for option in options:
        text = getattr(given, option.name)
        if text is not None:
            found[option.name] = text if option.read is None else option.read(text, spelled(given, option))
    return found


def spelled(given: Given, option: Option) -> str:
    """The option as it was named, by which of its names that may be."""
    return str(given.typed.get(option.name, option.flag))


def required(found: Mapping[str, Any], option: Option) -> Any:
    """The value of an option that cannot be left out."""
    if option.name not in found:
        raise InvalidInput(needed(option))
    return found[option.name]


def needed(option: Option) -> str:
    """What is said where an option is missing."""
    return Message("{flag} is needed: {help}.", flag=option_name(option.flag), help=option.help)
