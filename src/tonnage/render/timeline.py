"""A timeline of memory as one SVG: bytes by category over events, marks, and the peak. Needs nothing to be looked at
but a browser.
"""

from html import escape
from typing import Any

from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.palette import colour, memory_part

CATEGORIES = ("parameter", "gradient", "optimizer", "buffer", "activation", "temporary")  # from the axis upwards
LIMIT, GRID, INK, PAPER = colour("bad"), colour("line"), colour("ink"), colour("field")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1200, 560, 90, 110, 60, 100
MIN_MARK_DISTANCE = 14  # between the names of two marks


def timeline_svg(title: str, line: dict[str, Any], marks: list[dict[str, Any]], limit: int | None = None) -> str:
    """`line`: positions and bytes_by_category, as the document of `trace` has them; `marks`: name and position;
    `limit`: a line.
    """
    positions = line["positions"]
    columns = {
        name: line["bytes_by_category"][name] for name in CATEGORIES if any(line["bytes_by_category"].get(name, ()))
    }
    totals = [sum(column[i] for column in columns.values()) for i in range(len(positions))]
    top = max([*totals, limit or 0, 1]) * 1.05
    span = max(positions[-1] if positions else 1, 1)

    def x(position: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * position / span

    def y(size: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * size / top

    parts = [_head(title), *_grid(top, y)]
    below = [0.0] * len(positions)
    for name, column in columns.items():
        above = [low + size for low, size in zip(below, column, strict=True)]
        edge = [f"{x(p):.1f},{y(s):.1f}" for p, s in zip(positions, above, strict=True)]
        back = [f"{x(p):.1f},{y(s):.1f}" for p, s in zip(reversed(positions), reversed(below), strict=True)]
        parts.append(
            f'<polygon points="{" ".join(edge + back)}" fill="{_colour(name)}"><title>{worded(name)}</title></polygon>'
        )
        below = above
    parts += _marks(marks, x)
    if limit is not None:
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(limit):.1f}" y2="{y(limit):.1f}" stroke="{LIMIT}" '
            'stroke-dasharray="6 4"/>'
        )
    if totals:
        at = totals.index(max(totals))
        parts.append(
            f'<circle cx="{x(positions[at]):.1f}" cy="{y(totals[at]):.1f}" r="4" fill="none" stroke="{INK}"/>'
            f'<text x="{x(positions[at]):.1f}" y="{y(totals[at]) - 8:.1f}" '
            f'text-anchor="middle">{human(totals[at], "bytes")}</text>'
        )
    return "\n".join([*parts, *_legend(list(columns)), "</svg>\n"])


def _colour(category: str) -> str:
    return colour(memory_part(category).colour)


def _head(title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="{PAPER}"/><text x="{LEFT}" y="22" '
        f'font-size="15">{escape(worded(title))}</text>'
    )


def _grid(top: float, y: Any) -> list[str]:
    elements = []
    for step in range(6):
        size = top * step / 5
        elements.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(size):.1f}" y2="{y(size):.1f}" stroke="{GRID}"/>'
            f'<text x="{LEFT - 6}" y="{y(size) + 4:.1f}" text-anchor="end">{human(size, "bytes")}</text>'
        )
    return elements


def _marks(marks: list[dict[str, Any]], x: Any) -> list[str]:
    """A line for each; names that would lie upon one another are joined."""
    elements, named, last = [], "", 0.0
    for mark in marks:
        at = x(mark["position"])
        elements.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{INK}" stroke-width="0.6"/>'
        )
        if named and at - last < MIN_MARK_DISTANCE:
            named += f"{say(', ')}{worded(mark['name'])}"
            continue
        elements += _named(named, last)
        named, last = worded(mark["name"]), at
    return elements + _named(named, last)


def _named(name: str, at: float) -> list[str]:
    if not name:
        return []
    return [
        (
            f'<text transform="translate({at - 2:.1f},{HEIGHT - BOTTOM + 10}) rotate(35)" '
            f'font-size="10">{escape(name)}</text>'
        )
    ]


def _legend(names: list[str]) -> list[str]:
    elements = []
    for place, name in enumerate(names):
        left = LEFT + 110 * place
        elements.append(
            f'<rect x="{left}" y="34" width="12" height="12" fill="{_colour(name)}"/><text x="{left + 16}" '
            f'y="44">{worded(name)}</text>'
        )
    return elements
