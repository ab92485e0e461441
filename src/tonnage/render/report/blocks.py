"""What a report is made of, as plain data: the same blocks become HTML and Markdown. Texts are in the reader's
language already.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Figure(Struct, frozen=True):
    """A number as people read it; `path`: of the figure in the appendix that says where it comes from."""

    text: str
    path: str = ""


Cell = str | Figure


class Paragraph(Struct, frozen=True):
    """`kind`: plain or note."""

    text: str
    kind: str = "plain"


class Code(Struct, frozen=True):
    """A command, as it is typed."""

    text: str


class Bullets(Struct, frozen=True):
    """Sentences below each other."""

    rows: tuple[str, ...]


class Facts(Struct, frozen=True):
    """Names with their figures, and a note of each."""

    rows: tuple[tuple[str, Cell, str], ...]


class Table(Struct, frozen=True):
    """`strong`: numbers of the rows that stand out; `deep`: how far the first cell of each row is indented."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    strong: tuple[int, ...] = ()
    deep: tuple[int, ...] = ()


class Part(Struct, frozen=True):
    """A piece of a bar: `kind` is its colour and hatching."""

    name: str
    kind: str
    value: float


class Bar(Struct, frozen=True):
    name: str
    total: Figure
    value: float
    parts: tuple[Part, ...]
    band: tuple[float, float] | None = None


class Bars(Struct, frozen=True):
    """Stacked bars on one scale. `usable`, `capacity`: lines across them, with their words; `says`: the picture in a
    sentence.
    """

    bars: tuple[Bar, ...]
    unit: str
    says: str
    usable: float | None = None
    capacity: float | None = None


class Dot(Struct, frozen=True):
    """A point of a plane; `group` joins those of one line."""

    x: float
    y: float
    group: str
    best: bool


class Plane(Struct, frozen=True):
    """Points over two rates."""

    dots: tuple[Dot, ...]
    x: str
    y: str
    says: str


Block = Paragraph | Code | Bullets | Facts | Table | Bars | Plane


class Section(Struct, frozen=True):
    title: str
    blocks: tuple[Block, ...]


class Brief(Struct, frozen=True, kw_only=True):
    """The decision on one page. `kind`: fits, tight, no or unknown."""

    question: str
    kind: str
    verdict: str
    sections: tuple[Section, ...]


class Report(Struct, frozen=True, kw_only=True):
    """`terms`: TERMs by their paths, each shown down to its formulas in the appendix; `command`, `version`, `date`:
    what made it.
    """

    title: str
    brief: Brief
    sections: tuple[Section, ...]
    terms: Mapping[str, Mapping[str, Any]]
    command: str
    version: str
    date: str
