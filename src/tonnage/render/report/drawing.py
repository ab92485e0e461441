"""Where the parts of bars and planes lie, in pixels for SVG and in letters for Markdown. Every picture says in words
what it shows; its figures stand in a table beside it.
"""

from collections.abc import Mapping
from itertools import count
from math import ceil, floor, log10

from msgspec import Struct

from tonnage.kernel.units import GIB, KIB, MIB, TIB
from tonnage.language import say
from tonnage.language.columns import left as padded
from tonnage.language.columns import width as columns_of
from tonnage.language.quantities import human
from tonnage.render.palette import palette
from tonnage.render.palette import part as part_named
from tonnage.render.report.blocks import Bar, Bars, Plane

WIDTH, NAMES, VALUES, ROW, THICK = 760, 130, 96, 28, 18
LETTERS_OF_NAME = 18
DASHES = ("", "6 3", "2 3")
WIDTH_IN_LETTERS = 60  # of the longest bar


class Label(Struct, frozen=True):
    """A text at a place along an axis."""

    at: float
    text: str


class DrawnPart(Struct, frozen=True):
    """`kind` names its pattern."""

    x: float
    width: float
    kind: str
    name: str


class DrawnBar(Struct, frozen=True):
    """`over`: start and width of what lies beyond the usable line; `band`: the ends of the error band."""

    y: int
    name: str
    full_name: str
    total: str
    parts: tuple[DrawnPart, ...]
    over: tuple[float, float] | None
    band: tuple[float, float] | None


class DrawnBars(Struct, frozen=True):
    """Stacked bars between `top` and `bottom`. `usable`, `capacity`: lines across them; `kinds`: the legend."""

    says: str
    height: int
    top: int
    bottom: int
    ticks: tuple[Label, ...]
    bars: tuple[DrawnBar, ...]
    usable: Label | None
    capacity: Label | None
    kinds: dict[str, str]
    has_band: bool
    width: int = WIDTH
    thick: int = THICK


class DrawnDot(Struct, frozen=True):
    x: float
    y: float
    is_best: bool


class DrawnLine(Struct, frozen=True):
    """The dots of one group from left to right, and the place of the group in the legend. `colour`: its name."""

    name: str
    colour: str
    dashes: str
    dots: tuple[DrawnDot, ...]
    legend_x: int
    legend_y: int


class DrawnPlane(Struct, frozen=True):
    """A plane whose axes meet at `left` and `bottom`."""

    says: str
    height: int
    left: int
    bottom: int
    x: str
    y: str
    x_ticks: tuple[Label, ...]
    y_ticks: tuple[Label, ...]
    lines: tuple[DrawnLine, ...]
    width: int = WIDTH


def draw_bars(picture: Bars) -> DrawnBars:
    """Stacked bars from left to right, the usable and the capacity line across them, the error band as a bracket."""
    start = NAMES if any(bar.name for bar in picture.bars) else 2
    top = 20 if picture.usable is not None else 4
    bottom = top + ROW * len(picture.bars)
    ticks = _ticks(picture)
    longest = max(
        [bar.value for bar in picture.bars]
        + [bar.band[1] for bar in picture.bars if bar.band]
        + [line for line in (picture.usable, picture.capacity) if line is not None]
    )
    scale = (WIDTH - start - VALUES) / (1.02 * longest or 1)
    labels = (Label(round(start + value * scale, 1), text) for value, text in ticks)
    return DrawnBars(
        says=picture.says,
        height=bottom + (22 if ticks else 6),
        top=top,
        bottom=bottom,
        ticks=tuple(label for label in labels if label.at <= WIDTH - VALUES + 1),
        bars=tuple(
            _draw_bar(bar, top + ROW * at + (ROW - THICK) // 2, start, scale, picture.usable)
            for at, bar in enumerate(picture.bars)
        ),
        usable=_line(say("usable"), picture.usable, picture.unit, start, scale),
        capacity=_line(say("as sold"), picture.capacity, picture.unit, start, scale) if picture.usable else None,
        kinds={part.name: part.kind for bar in picture.bars for part in bar.parts},
        has_band=any(bar.band for bar in picture.bars),
    )


def _draw_bar(bar: Bar, y: int, start: int, scale: float, usable: float | None) -> DrawnBar:
    parts, x = [], float(start)
    for part in bar.parts:
        width = part.value * scale
        drawn = max(width - 1, 0.3)  # one pixel of ground between neighbours
        parts.append(DrawnPart(round(x, 2), round(drawn, 2), part.kind, part.name))
        x += width
    is_over = usable is not None and bar.value > usable
    return DrawnBar(
        y=y,
        name=bar.name if len(bar.name) <= LETTERS_OF_NAME else f"{bar.name[: LETTERS_OF_NAME - 1]}…",
        full_name=bar.name,
        total=bar.total.text,
        parts=tuple(parts),
        over=(round(start + usable * scale, 2), round((bar.value - usable) * scale, 2))
        if usable is not None and is_over
        else None,
        band=(round(start + bar.band[0] * scale, 2), round(start + bar.band[1] * scale, 2)) if bar.band else None,
    )


def _line(name: str, value: float | None, unit: str, start: int, scale: float) -> Label | None:
    return None if value is None else Label(round(start + value * scale, 1), f"{name} {_read(value, unit)}")


def letter_bars(picture: Bars) -> str:
    """A letter for each kind, as many of it as it is long; `|` is what is usable, dots are free."""
    longest = max([bar.value for bar in picture.bars] + ([picture.usable] if picture.usable is not None else []))
    name = max((columns_of(bar.name) for bar in picture.bars), default=0)
    scale = WIDTH_IN_LETTERS / longest if longest else 0.0
    marks = _marks(picture)
    lines = [
        f"{padded(bar.name, name)} {_letters(bar, scale, picture.usable, marks)} {bar.total.text}".strip()
        for bar in picture.bars
    ]
    kinds = {part.name: marks[part.kind] for bar in picture.bars for part in bar.parts}
    legend = ", ".join(f"{letter} {name}" for name, letter in kinds.items())
    usable = [say("| usable: {size}", size=_read(picture.usable, picture.unit))] if picture.usable is not None else []
    return "\n".join([*lines, "", legend, *usable])


def _marks(picture: Bars) -> dict[str, str]:
    """The letter of each kind of memory; times have numbers, in their order."""
    kinds = dict.fromkeys(part.kind for bar in picture.bars for part in bar.parts)
    numbers = map(str, count(1))
    return {kind: part_named(kind).letter or next(numbers) for kind in kinds}


def _letters(bar: Bar, scale: float, usable: float | None, marks: Mapping[str, str]) -> str:
    drawn, end = "", 0.0
    for part in bar.parts:
        end += part.value
        drawn += marks[part.kind] * (round(end * scale) - len(drawn))
    if usable is None:
        return drawn
    line = round(usable * scale)
    return drawn.ljust(line, "·") + "|" if len(drawn) <= line else f"{drawn[:line]}|{drawn[line:]}"


def _read(value: float, unit: str) -> str:
    return f"{100 * value:.0f} %" if unit == "share" else human(value, unit)


def _ticks(picture: Bars) -> list[tuple[float, str]]:
    """Round numbers along the axis, of memory and of shares alone."""
    most = max(
        [bar.value for bar in picture.bars] + [line for line in (picture.usable, picture.capacity) if line is not None]
    )
    if picture.unit == "share":
        return [(step / 4, f"{25 * step} %") for step in range(ceil(4 * most) + 1)]
    if picture.unit != "bytes" or most <= 0:
        return []
    size, word = next(
        (scale for scale in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if most >= 2 * scale[0]), (1, "B")
    )
    spacing = _round(most / size / 5)
    return [
        (at * spacing * size, f"{at * spacing:g} {word}" if not at else f"{at * spacing:g}")
        for at in range(floor(most / size / spacing) + 1)
    ]


def _round(step: float) -> float:
    """1, 2 or 5 times a power of ten, not less than `step`.

    >>> _round(3.2), _round(16), _round(0.7)
    (5.0, 20.0, 1.0)
    """
    power = 10.0 ** floor(log10(step))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= step * 0.999)


def draw_plane(picture: Plane) -> DrawnPlane:
    """Points over two rates, those of one plan joined, the best ringed."""
    height, left, below, right, above = 380, 70, 50, 16, 16
    bottom = height - below
    most_x = 1.05 * max(dot.x for dot in picture.dots)
    most_y = 1.08 * max(dot.y for dot in picture.dots)

    def across(x: float) -> float:
        return round(left + (WIDTH - left - right) * x / most_x, 1)

    def up(y: float) -> float:
        return round(bottom - (bottom - above) * y / most_y, 1)

    x_ticks = [at * _round(most_x / 5) for at in range(1, 6)]
    y_ticks = [at * _round(most_y / 5) for at in range(1, 6)]
    groups = list(dict.fromkeys(dot.group for dot in picture.dots))
    colours, lines = palette().series, []
    for at, group in enumerate(groups):
        dots = sorted((dot for dot in picture.dots if dot.group == group), key=lambda dot: dot.x)
        lines.append(
            DrawnLine(
                name=group,
                colour=colours[at % len(colours)],
                dashes=DASHES[at % len(DASHES)],
                dots=tuple(DrawnDot(across(dot.x), up(dot.y), dot.best) for dot in dots),
                legend_x=left + 220 * (at % 3),
                legend_y=height + 16 * (at // 3),
            )
        )
    return DrawnPlane(
        says=picture.says,
        height=height + 16 * ceil(len(groups) / 3),
        left=left,
        bottom=bottom,
        x=picture.x,
        y=picture.y,
        x_ticks=tuple(Label(across(value), f"{value:,g}") for value in x_ticks if value <= most_x),
        y_ticks=tuple(Label(up(value), f"{value:,g}") for value in y_ticks if value <= most_y),
        lines=tuple(lines),
        width=WIDTH,
    )
