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
    searched: options that the verb looks for by itself, which `--help` leaves to `--help-all`
    example: a command line that asks it
    """

    verb: str
    groups: tuple[Group, ...]
    words: tuple[str, ...] = ()
    verb_of_options: str = ""
    lists: frozenset[str] = frozenset()
    axes: bool = False
    required: tuple[str, ...] = ()
    searched: frozenset[str] = frozenset()
    example: str = ""

    @property
    def reads_as(self) -> str:
        return self.verb_of_options or self.verb

    @cached_property
    def options(self) -> dict[str, Option]:
        """Name -> option, in the order of the help: what stands alone comes first, then what has no title."""
        every = [option for group in self.groups for option in group.options]
        untitled = [option for group in self.groups for option in group.options if group.title == UNGROUPED]
        alone = [option for option in every if option.alone]
        return {option.name: option for option in (*alone, *untitled, *every)}

    @cached_property
    def flags(self) -> dict[str, Option]:
        """What can be typed for an option -> the option."""
        return {flag: option for option in self.options.values() for flag in option.flags}

    @cached_property
    def titles(self) -> dict[str, str]:
        """Option -> the title of its group."""
        return {option.name: group.title for group in self.groups for option in group.options}

    def of_face(self, face: Face) -> dict[str, Option]:
        return {name: option for name, option in self.options.items() if face in option.faces}

    def takes_lists(self, name: str) -> bool:
        """Whether several values may stand in a field of a question, as a list."""
        return (self.axes and name not in CHOOSING) or name in LISTS or name in self.lists


SWITCHES = frozenset({"train", "serve", "offline", "api"})  # false is the same as not given
CHOOSING = frozenset({"serve", "train"})  # options that choose a form of a verb: one of them


def without(options: Iterable[Option], names: Container[str]) -> tuple[Option, ...]:
    """The options that are none of these."""
    return tuple(option for option in options if option.name not in names)


def not_taken(options: Iterable[Option], names_taken: set[str]) -> tuple[Option, ...]:
    """The options whose names are not in `names_taken`, without short names that are; the names of the options that
    are returned are added to it.
    """
    free_options = []
    for option in options:
        if option.name in names_taken:
            continue
        short = tuple(flag for flag in option.short if flag not in names_taken)
        names_taken |= {option.name, option.flag, *short}
        free_options.append(replace(option, short=short))
    return tuple(free_options)


# ---- What was given in a question: text or value of each option, and how each was named.


class Given(SimpleNamespace):
    """An attribute for each option: its text, of a switch its value; None where it was not given.

    `typed`: option -> the name by which it was given.
    """

    typed: Mapping[str, str] = {}


def values(arguments: Given, options: Iterable[Option]) -> dict[str, Any]:
    """The options that were given, read; an error names the option."""
    read_values = {}
    for option in options:
        text = getattr(arguments, option.name)
        if text is not None:
            read_values[option.name] = text if option.read is None else option.read(text, spelled(arguments, option))
    return read_values


def spelled(arguments: Given, option: Option) -> str:
    """The option as it was named, by which of its names that may be."""
    return str(arguments.typed.get(option.name, option.flag))


def required(read_values: Mapping[str, Any], option: Option) -> Any:
    """The value of an option that cannot be left out."""
    if option.name not in read_values:
        raise InvalidInput(needed(option))
    return read_values[option.name]


def needed(option: Option) -> str:
    """What is said where an option is missing."""
    return Message("{flag} is needed: {help}.", flag=option_name(option.flag), help=option.help)
