"""Bars and planes as SVG within the file. Every picture says in words what it shows; its figures stand in a table
beside it.
"""

from html import escape
from math import ceil, floor, log10

from tonnage.kernel.units import GIB, KIB, MIB, TIB
from tonnage.language import say
from tonnage.language.quantities import human
from tonnage.render.report._blocks import Bar, Bars, Plane

WIDTH, NAMES, VALUES, ROW, THICK = 760, 130, 96, 28, 18
LETTERS = 18  # of a bar's name
COLOURS = ("#1d4f7c", "#b9641c", "#23807a", "#85508f", "#b03a5b", "#8f7a17", "#3d8bc0", "#66727a")


def bars_svg(picture: Bars, prefix: str) -> str:
    """Stacked bars from left to right, the usable and the capacity line across them, the error band as a bracket."""
    named = any(bar.name for bar in picture.bars)
    left = NAMES if named else 2
    head = 20 if picture.usable is not None else 4
    tall = head + ROW * len(picture.bars) + (22 if _ticks(picture) else 6)
    longest = max(
        [bar.value for bar in picture.bars]
        + [bar.band[1] for bar in picture.bars if bar.band]
        + [each for each in (picture.usable, picture.capacity) if each is not None]
    )
    scale = (WIDTH - left - VALUES) / (1.02 * longest or 1)
    parts = [f'<svg viewBox="0 0 {WIDTH} {tall}" role="img" aria-label="{escape(picture.says)}" font-size="12">']
    bottom = head + ROW * len(picture.bars)
    for value, label in _ticks(picture):
        x = left + value * scale
        if x <= WIDTH - VALUES + 1:
            parts.append(
                f'<path d="M{x:.1f} {head}V{bottom}" stroke="#d6dcdf" stroke-width="1" opacity=".6"/><text '
                f'class="soft" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{escape(label)}</text>'
            )
    for at, bar in enumerate(picture.bars):
        parts += _bar(bar, head + ROW * at + (ROW - THICK) // 2, left, scale, picture.usable, prefix)
    parts += _lines(picture, left, scale, head, bottom)
    return "".join([*parts, "</svg>"])


def _bar(bar: Bar, y: int, left: int, scale: float, usable: float | None, prefix: str) -> list[str]:
    made, x = [], float(left)
    name = bar.name if len(bar.name) <= LETTERS else f"{bar.name[: LETTERS - 1]}…"
    if bar.name:
        made.append(f'<text x="0" y="{y + 13}">{escape(name)}<title>{escape(bar.name)}</title></text>')
    for part in bar.parts:
        wide = part.value * scale
        drawn = max(wide - 1, 0.3)  # one pixel of ground between neighbours
        made.append(
            f'<rect x="{x:.2f}" y="{y}" width="{drawn:.2f}" height="{THICK}" '
            f'fill="url(#{prefix}-{part.kind})"><title>{escape(part.name)}</title></rect>'
        )
        x += wide
    if usable is not None and bar.value > usable:
        start = left + usable * scale
        made.append(
            f'<rect x="{start:.2f}" y="{y}" width="{(bar.value - usable) * scale:.2f}" height="{THICK}" '
            f'fill="url(#{prefix}-over)"/>'
        )
    if bar.band:
        low, high = (left + end * scale for end in bar.band)
        made.append(
            f'<rect x="{low:.2f}" y="{y - 3}" width="{high - low:.2f}" height="{THICK + 6}" fill="#7d898f" '
            'opacity=".22"/>'
            f'<path d="M{low:.2f} {y + 4}v10M{high:.2f} {y + 4}v10M{low:.2f} {y + 9}H{high:.2f}" '
            'stroke="currentColor" stroke-width="1.5" fill="none"/>'
        )
    made.append(f'<text x="{WIDTH}" y="{y + 13}" text-anchor="end">{escape(bar.total.text)}</text>')
    return made


def _lines(picture: Bars, left: int, scale: float, head: int, bottom: int) -> list[str]:
    """What is usable, and dashed what the accelerator has."""
    if picture.usable is None:
        return []
    x = left + picture.usable * scale
    made = [
        (
            f'<path d="M{x:.1f} {head - 4}V{bottom}" stroke="currentColor" stroke-width="1.6"/>'
            f'<text x="{x - 3:.1f}" y="{head - 8}" text-anchor="end" '
            f'font-weight="600">{escape(say("usable"))} {escape(_read(picture.usable, picture.unit))}</text>'
        )
    ]
    if picture.capacity is not None:
        at = left + picture.capacity * scale
        made.append(
            f'<path d="M{at:.1f} {head - 4}V{bottom}" stroke="currentColor" stroke-width="1" stroke-dasharray="3 2"/>'
            f'<text class="soft" x="{max(at, x + 4) + 3:.1f}" y="{head - 8}">{escape(say("as sold"))} '
            f"{escape(_read(picture.capacity, picture.unit))}</text>"
        )
    return made


def _read(value: float, unit: str) -> str:
    return f"{100 * value:.0f} %" if unit == "share" else human(value, unit)


def _ticks(picture: Bars) -> list[tuple[float, str]]:
    """Round numbers along the axis, of memory and of shares alone."""
    most = max(
        [bar.value for bar in picture.bars] + [each for each in (picture.usable, picture.capacity) if each is not None]
    )
    if picture.unit == "share":
        return [(step / 4, f"{25 * step} %") for step in range(ceil(4 * most) + 1)]
    if picture.unit != "bytes" or most <= 0:
        return []
    size, word = next(
        (each for each in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if most >= 2 * each[0]), (1, "B")
    )
    apart = _round(most / size / 5)
    return [
        (at * apart * size, f"{at * apart:g} {word}" if not at else f"{at * apart:g}")
        for at in range(floor(most / size / apart) + 1)
    ]


def _round(step: float) -> float:
    """1, 2 or 5 times a power of ten, not less than `step`.

    >>> _round(3.2), _round(16), _round(0.7)
    (5.0, 20.0, 1.0)
    """
    power = 10.0 ** floor(log10(step))
    return next(power * each for each in (1, 2, 5, 10) if power * each >= step * 0.999)


def plane_svg(picture: Plane) -> str:
    """Points over two rates, those of one plan joined, the best ringed."""
    tall, left, low, right = 380, 70, 50, 16
    most_x = 1.05 * max(dot.x for dot in picture.dots)
    most_y = 1.08 * max(dot.y for dot in picture.dots)

    def place(x: float, y: float) -> tuple[float, float]:
        return left + (WIDTH - left - right) * x / most_x, tall - low - (tall - low - 16) * y / most_y

    groups = list(dict.fromkeys(dot.group for dot in picture.dots))
    parts = [
        (
            f'<svg viewBox="0 0 {WIDTH} {tall + 16 * ceil(len(groups) / 3)}" role="img" '
            f'aria-label="{escape(picture.says)}" font-size="12">'
        ),
        f'<path d="M{left} 10V{tall - low}H{WIDTH - right}" stroke="#7d898f" fill="none"/>',
    ]
    for at in range(1, 6):
        (x, _), (_, y) = place(across := at * _round(most_x / 5), 0), place(0, up := at * _round(most_y / 5))
        if across <= most_x:
            parts.append(
                f'<text class="soft" x="{x:.1f}" y="{tall - low + 16}" text-anchor="middle">{across:,g}</text>'
            )
        if up <= most_y:
            parts.append(f'<text class="soft" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{up:,g}</text>')
    for at, group in enumerate(groups):
        dots = sorted((dot for dot in picture.dots if dot.group == group), key=lambda dot: dot.x)
        spots = [place(dot.x, dot.y) for dot in dots]
        colour, dashes = COLOURS[at % len(COLOURS)], ("", "6 3", "2 3")[at % 3]
        parts.append(
            f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in spots)}" fill="none" '
            f'stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dashes}"/>'
        )
        parts += [
            (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4.5 if dot.best else 2}" '
                f'fill="{"none" if dot.best else colour}" stroke="{colour}" stroke-width="1.6"/>'
            )
            for dot, (x, y) in zip(dots, spots, strict=True)
        ]
        x, y = left + 220 * (at % 3), tall + 16 * (at // 3)
        parts.append(
            f'<path d="M{x} {y - 4}h18" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes}"/><text x="{x + 23}" y="{y}">{escape(group)}</text>'
        )
    parts.append(
        f'<text x="{WIDTH / 2}" y="{tall - 16}" text-anchor="middle">{escape(picture.x)}</text>'
        f'<text transform="translate(14,{(tall - low) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(picture.y)}</text></svg>'
    )
    return "".join(parts)
