"""An option: what people are told about it, how its value is read, and which faces have it."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tonnage.question.forms import Reader, as_written, word

Choices = tuple[str, ...] | Callable[[], Iterable[str]]
Face = Literal["command line", "json"]  # json: HTTP, the page, assistants; Python has the options of structs
FACES: tuple[Face, ...] = ("command line", "json")
S = TypeVar("S", bound=type[Struct])


TEXTS: tuple[Reader, ...] = (word, as_written)  # all other readers take numbers

# Titles of `--help`, in its order; `--help-all` has the groups of the form.
MODEL_AND_MACHINE, SEARCH, SERVING, LOAD = "Model and machine", "Search", "Serving", "Load and targets"
TRAINING, MEMORY, PARALLELISM, RUN_AND_MONEY = "Training", "Memory", "Parallelism", "Run and money"
TITLES = (MODEL_AND_MACHINE, SEARCH, TRAINING, LOAD, SERVING, MEMORY, PARALLELISM, RUN_AND_MONEY)


class Usual(Struct, frozen=True):
    """How `--help` shows an option that most people need; all others are in `--help-all`.

    title: the group, one of TITLES
    help: what it is, in half a line
    metavar: what stands for its value
    default: shown in brackets; None: the option's own
    flag: the name that is shown, where that is a short one
    place: in its group: lower ones come first, and those of one place as the form has them
    """

    title: str
    help: str
    metavar: str
    default: str | None = None
    flag: str = ""
    place: int = 0


class Option(Struct, frozen=True):
    """One option of a question.

    name: its long name, which is the same in every face (with dashes on the command line)
    help: what it is, in one line; empty where its choices say it
    lists_choices: help and documentation name its choices behind that line
    read: reads its text; None: it is a switch
    short: other names of ours, as they are typed
    unit, default: shown behind the help; the default is a value or a rule in words
    choices: names that it takes and nothing else; `known`: names beside which it takes others
    faces: where it can be given
    alone: it stands by itself, without its name; `many`: several of these do
    negatable: a switch that has --no-... too
    repeated: it can be given again, each time with more
    metavar: what stands for its value in the help, where that is not its unit
    usual: how `--help` shows it; None: `--help-all` alone does
    """

    name: str
    help: str
    read: Reader | None = None
    short: tuple[str, ...] = ()
    unit: str = ""
    default: str = ""
    choices: Choices = ()
    known: Choices = ()
    faces: tuple[Face, ...] = FACES
    alone: bool = False
    many: bool = False
    negatable: bool = True
    repeated: bool = False
    metavar: str = ""
    lists_choices: bool = False
    usual: Usual | None = None

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def kind(self) -> Literal["switch", "text", "number"]:
        """A number is one that may be written as a text too, such as 8k."""
        if self.read is None:
            return "switch"
        return "text" if self.read in TEXTS else "number"

    @property
    def about(self) -> str:
        """The help with its choices, unit and default."""
        unit = f" [{self.unit}]" if self.unit else ""
        default = f" (default: {self.default})" if self.default else ""
        return self.meaning + unit + default

    @property
    def meaning(self) -> str:
        """The help, and the choices that it lists."""
        return ": ".join(filter(None, (self.help, self.listed_choices)))

    @property
    def listed_choices(self) -> str:
        """The names that its help lists, read off their registry; empty where it lists none."""
        return ", ".join(names_in(self.choices)) if self.lists_choices or not self.help else ""

    @property
    def flags(self) -> tuple[str, ...]:
        """Everything that can be typed for it on a command line."""
        no = (f"--no-{self.flag[2:]}",) if self.read is None and self.negatable else ()
        return () if self.alone else (self.flag, *no, *self.short, *(f"--no-{word[2:]}" for word in self.short if no))


def option(
    help: str,
    read: Reader | None = None,
    *,
    short: tuple[str, ...] = (),
    unit: str = "",
    default: str = "",
    choices: Choices = (),
    known: Choices = (),
    faces: tuple[Face, ...] = FACES,
    lists_choices: bool = False,
    usual: Usual | None = None,
) -> Option:
    """The declaration of the field that it annotates, which gives it its name and its type."""
    return Option("", help, read, short, unit, default, choices, known, faces, lists_choices=lists_choices, usual=usual)


class Options(Struct, frozen=True, kw_only=True):
    """Options of one subject: each field is annotated with its declaration, and None says that it was not given."""


@cache
def options_of(form: type[Struct]) -> tuple[Option, ...]:
    """The options that a struct declares, in its order."""
    annotations = _annotations(form).items()
    return tuple(_named(name, annotation) for name, annotation in annotations if hasattr(annotation, "__metadata__"))


@cache
def types_of(form: type[Struct]) -> dict[str, Any]:
    """Field -> the type of its value, of every field that a struct has."""
    annotations = _annotations(form)
    return {name: getattr(annotations[name], "__origin__", annotations[name]) for name in form.__struct_fields__}


def described(form: S) -> S:
    """The struct with a line for each of its options in its docstring, for `help()`."""
    lines = (f"- {option.name} [{option.unit or 'switch'}]: {_said(option)}" for option in options_of(form))
    form.__doc__ = "\n".join([f"{(form.__doc__ or '').rstrip()}\n", *(f"    {line}" for line in lines), "    "])
    return form


def _said(option: Option) -> str:
    return option.help + (f" (default: {option.default})" if option.default else "")


def _annotations(form: type[Struct]) -> dict[str, Any]:
    """Field -> its annotation; fields of the structs before it come first."""
    annotations: dict[str, Any] = {}
    for base in reversed(form.__mro__):
        annotations |= getattr(base, "__annotations__", {})
    return annotations


def _named(name: str, annotation: Any) -> Option:
    declared: Option = annotation.__metadata__[0]
    return replace(declared, name=name)


def names_in(choices: Choices) -> tuple[str, ...]:
    """The names of choices that are read off a registry when they are asked for."""
    return tuple(choices() if callable(choices) else choices)
