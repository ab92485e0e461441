"""One picture as plain data: what plotly draws, and the same figures as words and as a table."""

from collections.abc import Iterable
from html import escape
from textwrap import wrap
from typing import Any

from msgspec import Struct

from tonnage.language import current
from tonnage.language.columns import wrapped
from tonnage.language.quantities import human
from tonnage.render.palette import Part, memory_part, time_part
from tonnage.render.palette import colour as named

GIB = 2**30
LIMIT, INK = named("bad"), named("ink2")
IDLE = "rgba(128,128,128,0.16)"  # on any ground
SHAPES = {"bar": "/", "dots": ".", "lines": "-", "grid": "x", "thin": "|"}  # plotly's names of our marks


class Panel(Struct, frozen=True, kw_only=True):
    """`says`: the picture in a word, for those who do not see it; `tiles`: names with figures, instead of a
    drawing.

    `traces`, `x`, `y`, `shapes`, `notes` and `bars` are plotly's; a trace or a shape without an axis of its own is on
    this panel's.
    """

    name: str
    title: str
    says: str
    tiles: tuple[tuple[str, str], ...] = ()
    traces: tuple[dict[str, Any], ...] = ()
    x: dict[str, Any] = {}
    y: dict[str, Any] = {}
    shapes: tuple[dict[str, Any], ...] = ()
    notes: tuple[dict[str, Any], ...] = ()
    bars: str = "stack"
    height: int = 380
    wide: bool = False
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def colour(name: str) -> str:
    """The colour of a kind of memory or work, on light ground."""
    return named(_part(name).colour)


def dark_colour(name: str) -> str:
    """The same on dark ground."""
    return named(_part(name).colour, "dark")


def marker(name: str) -> dict[str, Any]:
    """Colour and marks of the bars of a kind of memory or work."""
    shape = SHAPES.get(_part(name).marks)
    if shape is None:
        return {"color": colour(name)}
    drawn = {
        "shape": shape,
        "size": 7,
        "solidity": 0.25,
        "fillmode": "overlay",
        "fgcolor": named("hatch"),
        "fgopacity": 0.6,
    }
    return {"color": colour(name), "pattern": drawn}


def _part(name: str) -> Part:
    return time_part(name) or memory_part(name)


def scale(seconds: float) -> tuple[float, str]:
    """A factor and a unit in which so many seconds are easily read."""
    for most, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (600.0, 1.0, "s"), (36000.0, 1 / 60, "min")):
        if seconds < most:
            return factor, unit
    return 1 / 3600, "h"


def told(name: str, value: float, unit: str) -> str:
    """What a pointer over a bar is told."""
    return f"<b>{name}</b><br>{human(value, unit)}"


def shade(colour: str, share: float, ground: str = "#ffffff") -> str:
    """A colour mixed with so much of the ground.

    >>> shade("#4c78a8", 0.5)
    '#a6bcd4'
    """
    mixed = zip(_channels(colour), _channels(ground), strict=True)
    return "#" + "".join(f"{round(part + (below - part) * share):02x}" for part, below in mixed)


def _channels(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def lines(name: str, most: int) -> str:
    """A name over lines of so many letters, as plotly breaks them."""
    cut = wrap(name, most, break_long_words=False) if current() == "en" else wrapped(name, most)
    return "<br>".join(map(escape, cut))


def together(sentences: Iterable[str]) -> str:
    """Sentences one after another; Chinese has no blank between them."""
    return (" " if current() == "en" else "").join(sentences)
