"""The bar of memory: a letter for each part, named in the legend below it, with one table of letters, colours and
names.
"""

from collections.abc import Sequence

from tonnage.kernel.part_names import is_left_unused
from tonnage.kernel.term import Term
from tonnage.language import say, say_as, worded
from tonnage.language.columns import width as columns
from tonnage.render.brief.layout import Page, Runs
from tonnage.render.brief.numbers import gib, parts_in_gib
from tonnage.render.palette import Part, colour, label, palette
from tonnage.render.palette import part as part_named

MIN_CELLS, MAX_CELLS = 20, 60
BAND, FREE, LIMIT = "~", ".", "|"
PEAK = 90  # order in which the peak is left out: first


PARTS = palette().parts
RUNTIME, UNUSED = part_named("overhead"), part_named("reserved")
_OF = {term: part for part in PARTS for term in part.terms}


def memory_parts(memory: Term) -> list[tuple[Part, float]]:
    """The parts of a breakdown in the order of the table; what the engine leaves unused is apart from the runtime."""
    sizes = dict.fromkeys(PARTS, 0.0)
    for child in memory.children:
        sizes[_OF.get(child.name, RUNTIME)] += child.value
        for below in child.children:
            if is_unused(below):
                sizes[UNUSED] += below.value
                sizes[RUNTIME] -= below.value
    return [(part, size) for part, size in sizes.items() if size > 0]


def is_unused(term: Term) -> bool:
    """Whether this is what the engine does not use of what it could."""
    return is_left_unused(term.name)


def peak_of(memory: Term) -> str:
    """When memory is fullest, of training; nothing else has a moment."""
    values = getattr(memory.name, "values", {})
    return worded(values["peak"]) + worded(values.get("where", "")) if "peak" in values else ""


def add_bar(
    page: Page,
    parts: Sequence[tuple[Part, float]],
    usable: float,
    band: Sequence[float] | None = None,
    peak: str = "",
    engine: str = "",
) -> None:
    """The bar with its figure, and the legend. `peak`: when memory is fullest; `engine`: its name, in the legend."""
    needed = sum(size for _, size in parts)
    figure = (
        say(
            "{needed} GiB ({low} to {high}) of {usable} usable",
            needed=gib(needed),
            low=gib(band[0]),
            high=gib(band[1]),
            usable=gib(usable),
        )
        if band
        else say("{needed} GiB of {usable} usable", needed=gib(needed), usable=gib(usable))
    )
    own_line = page.width - page.indent - columns(figure) - 3 < MIN_CELLS
    room = page.width - page.indent - (1 if own_line else columns(figure) + 3)
    cells = max(MIN_CELLS, min(MAX_CELLS, room))
    bar = _bar(parts, usable, max(band[1], needed) if band else needed, cells)
    lines: list[Runs] = [[*page.label("memory"), *bar, *([] if own_line else [("  " + figure, "")])]]
    lines += [[(" " * page.indent + figure, "")]] if own_line else []
    items: list[Runs] = []
    for (part, _), value in zip(parts, parts_in_gib([size for _, size in parts], needed), strict=True):
        name = say("left unused by {engine}", engine=engine) if part is UNUSED and engine else label(part)
        if value == "0.0":
            continue
        items.append([(part.letter, _style(part)), (f" {name} {value}", "")])
    if band:
        items.append([(BAND, "yellow"), (f" {say_as('short', 'error band')}", "")])
    short = [*lines, *page.wrapped_items(items)]
    if peak:
        longer = page.wrapped_items([*items, [(say("peak: {phase}", phase=peak), "dim")]])
        page.block([*lines, *longer], (PEAK, short))
    else:
        page.block(short)


def _bar(parts: Sequence[tuple[Part, float]], usable: float, high: float, cells: int) -> Runs:
    """Letters as far as memory is needed, the error band, what is free, and where what is usable ends."""
    scale = max(usable, high)
    needed = sum(size for _, size in parts)
    limit, stop, top = (round(value / scale * cells) for value in (usable, needed, high))
    if high > needed and top == stop:
        stop, top = (stop, top + 1) if top < cells else (stop - 1, top)
    ends, total = [], 0.0
    for _, size in parts:
        total += size
        ends.append(round(total / scale * cells))
    runs: Runs = []
    for at in range(cells + 1):
        if at == limit:
            runs.append((LIMIT, "bold red" if high > usable else "bold"))
        if at == cells:
            break
        if at < stop:
            part = next((part for (part, _), end in zip(parts, ends, strict=True) if at < end), parts[-1][0])
            runs.append((part.letter, _style(part)))
        elif at < top:
            runs.append((BAND, "yellow"))
        elif at < limit:
            runs.append((FREE, "dim"))
        else:
            runs.append((" ", ""))
    return _merged(runs)


def _style(part: Part) -> str:
    """How a letter is shown on a terminal: dark on the part's colour, which is read on any ground."""
    return f"black on {colour(part.colour, 'dark')}"


def _merged(runs: Runs) -> Runs:
    merged: Runs = []
    for text, style in runs:
        if merged and merged[-1][1] == style:
            merged[-1] = (merged[-1][0] + text, style)
        else:
            merged.append((text, style))
    return merged
