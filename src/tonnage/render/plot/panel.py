"""One picture as plain data: what plotly draws, and the same figures as words and as a table."""

from collections.abc import Iterable
from html import escape
from textwrap import wrap
from typing import Any

from msgspec import Struct

from tonnage.language import current
from tonnage.language.columns import wrapped
from tonnage.language.quantities import human

GIB = 2**30
# The kinds of memory as in `render.timeline`, passes and works beside them; readable on white and on black.
COLOURS = {
    "weights": "#4c78a8",
    "gradients": "#e45756",
    "optimizer": "#72b7b2",
    "kv cache": "#b279a2",
    "activations": "#54a24b",
    "temporary": "#f2b134",
    "communication buffers": "#b279a2",
    "runtime overhead": "#9d755d",
    "forward": "#4c78a8",
    "run again": "#b279a2",
    "backward": "#f58518",
    "exposed communication": "#e45756",
    "between stages": "#e45756",
    "fixed": "#9d755d",
    "once a step": "#72b7b2",
    "gradients, once a step": "#d67195",
    "gradients of replicas, once a step": "#d67195",
    "weights, once a step": "#a0a83b",
}
OTHER, IDLE, LIMIT, INK = "#8a8a8a", "rgba(128,128,128,0.16)", "#d6353c", "rgba(128,128,128,0.9)"
DARK = "#1f2328"


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
    """The colour of a kind of memory or work."""
    return COLOURS.get(name, OTHER)


def scale(seconds: float) -> tuple[float, str]:
    """A factor and a unit in which so many seconds are easily read."""
    for most, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (600.0, 1.0, "s"), (36000.0, 1 / 60, "min")):
        if seconds < most:
            return factor, unit
    return 1 / 3600, "h"


def told(name: str, value: float, unit: str) -> str:
    """What a pointer over a bar is told."""
    return f"<b>{name}</b><br>{human(value, unit)}"


def shade(colour: str, share: float) -> str:
    """A colour mixed with so much white.

    >>> shade("#4c78a8", 0.5)
    '#a6bcd4'
    """
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in parts)


def lines(name: str, most: int) -> str:
    """A name over lines of so many letters, as plotly breaks them."""
    cut = wrap(name, most, break_long_words=False) if current() == "en" else wrapped(name, most)
    return "<br>".join(map(escape, cut))


def together(sentences: Iterable[str]) -> str:
    """Sentences one after another; Chinese has no blank between them."""
    return (" " if current() == "en" else "").join(sentences)
