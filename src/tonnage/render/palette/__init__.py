"""The colours, patterns and labels of every picture, from one file: palette.toml."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.kernel.prepared import tables
from tonnage.language import say_as

FILE = Path(__file__).with_name("palette.toml")
THEMES = ("light", "dark")
LABELLED = "memory part"  # the context of the labels in the catalogue


class Part(Struct, frozen=True):
    """A kind of memory or of time. `colour` names its colour; `marks` the marks on it, in squares of `size` pixels that
    are turned by so many degrees. `letter`: in bars that are text. `terms`: names that breakdowns have for it.
    """

    name: str
    colour: str
    label: str = ""
    letter: str = ""
    terms: tuple[str, ...] = ()
    marks: str = ""
    size: int = 8
    turn: int = 0


class Palette(Struct, frozen=True):
    """`colours`: theme -> name of a colour -> `#rrggbb`; `series`: names of the colours of lines beside each other."""

    colours: dict[str, dict[str, str]]
    series: tuple[str, ...]
    parts: tuple[Part, ...]
    times: tuple[Part, ...]


@cache
def palette() -> Palette:
    """What palette.toml says."""
    read: Palette = tables(str(FILE), Palette)
    return read


def memory_part(term: str) -> Part:
    """The part of memory that a breakdown calls so. What has no row of its own is drawn as the runtime is; a state is
    drawn as a cache is.
    """
    return _named("parts").get(term) or part("kv" if "cache" in term or "state" in term else "overhead")


def time_part(term: str) -> Part | None:
    """What a picture of a step calls so; None where it has no row."""
    return _named("times").get(term)


def part(name: str) -> Part:
    """The part of memory or of time with this name."""
    return _by_name()[name]


def colour(name: str, theme: str = "light") -> str:
    """`#rrggbb` of a colour by its name."""
    return palette().colours[theme][name]


def label(part: Part) -> str:
    """What a part of memory is called, in the reader's language."""
    return say_as(LABELLED, part.label)


def term_label(term: str) -> str | None:
    """What the part of memory with this name in breakdowns is called; None where it is no part of its own."""
    found = _named("parts").get(term)
    return label(found) if found else None


def series(count: int, theme: str = "light") -> list[str]:
    """So many colours of lines; the first again after the last."""
    names = palette().series
    return [colour(names[at % len(names)], theme) for at in range(count)]


def declarations(theme: str, names: Iterable[str] | None = None) -> str:
    """The colours of a theme as CSS custom properties: all, or those with these names."""
    colours = palette().colours[theme]
    return " ".join(f"--{name}: {colours[name]};" for name in (colours if names is None else names))


@cache
def _named(kind: str) -> dict[str, Part]:
    return {term: part for part in getattr(palette(), kind) for term in part.terms}


@cache
def _by_name() -> dict[str, Part]:
    return {part.name: part for part in (*palette().parts, *palette().times)}
