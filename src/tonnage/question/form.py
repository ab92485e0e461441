"""A form of a question: a verb, and the options that it has when it is asked in this way."""

from collections.abc import Container, Iterable, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, option_name
from tonnage.question.option import Face, Option

# Options that take several values whose text has commas, of every verb.
WHOLE = frozenset(
    {
        "lora_targets",
        "recompute_modules",
        "offload_modules",
        "cuda_graph",
        "pipeline_layout",
        "runtime_version",
        "exchange_rate",
    }
)
LISTS = WHOLE | {"names", "vary", "leave", "join"}
CONTENTS = ("model", "inventory")  # options that take the content of a file, as an object
ALONE, UNGROUPED = "", "options"  # titles of what stands alone, and of what has no title of its own


class Group(Struct, frozen=True):
    """Options under one title. `exclusive`: at most one of them can be given."""

    title: str
    options: tuple[Option, ...]
    exclusive: bool = False


class Form(Struct, frozen=True, dict=True):
    """A verb and its options.

    words: those that choose this form of the verb on the command line
    verb_of_options: the verb whose options these are, as other tools spell them, where it is not `verb`
    lists: options that take several values; `axes`: all of them do, but those that choose the form
    required: options that cannot be left out
    """

    verb: str
    groups: tuple[Group, ...]
    words: tuple[str, ...] = ()
    verb_of_options: str = ""
    lists: frozenset[str] = frozenset()
    axes: bool = False
    required: tuple[str, ...] = ()

    @property
    def reads_as(self) -> str:
        return self.verb_of_options or self.verb

    @cached_property
    def options(self) -> dict[str, Option]:
        """Name -> option, in the order of the help: what stands alone comes first, then what has no title."""
        every = [each for group in self.groups for each in group.options]
        untitled = [each for group in self.groups for each in group.options if group.title == UNGROUPED]
        alone = [each for each in every if each.alone]
        return {each.name: each for each in (*alone, *untitled, *every)}

    @cached_property
    def flags(self) -> dict[str, Option]:
        """What can be typed for an option -> the option."""
        return {flag: each for each in self.options.values() for flag in each.flags}

    @cached_property
    def titles(self) -> dict[str, str]:
        """Option -> the title of its group."""
        return {each.name: group.title for group in self.groups for each in group.options}

    def of_face(self, face: Face) -> dict[str, Option]:
        return {name: each for name, each in self.options.items() if face in each.faces}

    def takes_lists(self, name: str) -> bool:
        """Whether several values may stand in a field of a question, as a list."""
        return (self.axes and name not in CHOOSING) or name in LISTS or name in self.lists


SWITCHES = frozenset({"train", "serve", "offline", "api"})  # false is the same as not given
CHOOSING = frozenset({"serve", "train"})  # options that choose a form of a verb: one of them


def without(options: Iterable[Option], names: Container[str]) -> tuple[Option, ...]:
    """The options that are none of these."""
    return tuple(each for each in options if each.name not in names)


def not_taken(options: Iterable[Option], taken: set[str]) -> tuple[Option, ...]:
    """The options whose names are not in `taken`, without short names that are; their names are added to `taken`."""
    found = []
    for each in options:
        if each.name in taken:
            continue
        short = tuple(flag for flag in each.short if flag not in taken)
        taken |= {each.name, each.flag, *short}
        found.append(replace(each, short=short))
    return tuple(found)


# ---- What was given in a question: text or value of each option, and how each was named.


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
