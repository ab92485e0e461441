"""A comparison as lines of text, or as Markdown. A renderer lays out and computes nothing else."""

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any

from tonnage.render.text import table_lines
from tonnage.search.compare import Comparison
from tonnage.search.compare.columns import Column
from tonnage.search.compare.comparison import Cell
from tonnage.search.compare.pivot import Pivot, label, pivot, reasons, settings, shown
from tonnage.units import human

WIDTH = 150  # where no terminal says how wide it is
MOST_ROWS = 60  # of a table for people: --csv and --json have all
MOST_NOTES = 8
FEW = 10  # what less than a tenth of the cells noted is not shown
GAP, GROUP_GAP = "  ", "   "
MARKS = {"tight": "~", "not served": "!"}
SAID = {
    "*": "best of its column",
    "~": "tight: what is usable lies inside the error band",
    "!": "fits, but does not answer as asked",
}


def comparison_lines(made: Comparison, *, show: Sequence[str] = (), rows: bool = False, width: int = WIDTH) -> list[str]:  # fmt: skip
    """The best, what all cells have in common, the table, what its words mean, and why cells have no answer."""
    across = None if rows else pivot(made)
    figures = shown(made, show, across=across is not None)
    table = _rows(made, figures, width) if across is None else _pivoted(made, across, figures, width)
    common = [f"  {name:<28} {_setting(name, value)}" for name, value in settings(made).items()]
    legend = [line for each in _legend(made, figures) for line in wrap(each, min(width, WIDTH), break_on_hyphens=False)]
    return [first_line(made), "", *common, "", *table, "", *legend, *_notes(made)]


def comparison_markdown(made: Comparison, *, show: Sequence[str] = (), rows: bool = False) -> str:
    """The same as Markdown, which GitHub shows as a table."""
    across = None if rows else pivot(made)
    figures = shown(made, show, across=across is not None)
    if across is None:
        header, body = _row_header(made, figures), [_row_cells(made, number, figures, bold) for number in _first(made)]
    else:
        header = [*across.down, *(f"{across.across} {head}" for head in across.heads)]
        body = [[*line.labels, *(_in_one(made, number, across, figures) for number in line.cells)] for line in across.lines[:MOST_ROWS]]  # fmt: skip
    common = ", ".join(f"{name} {_setting(name, value)}" for name, value in settings(made).items() if name != "model")
    table = [_pipes(header), _pipes(["---"] * len(header)), *map(_pipes, body)]
    legend = [f"- {each}" for each in (*_legend(made, figures), *_notes(made))]
    return "\n".join([f"**{first_line(made)}**", "", *([common, ""] if common else []), *table, "", *legend]) + "\n"


def first_line(made: Comparison) -> str:
    """How many fit, and the best of them."""
    counts, all_of = made.counts, f"{len(made.cells):,}"
    axes = {axis.name: axis.labels for axis in made.axes}
    what = f"{', '.join(axes['model'])} on {', '.join(axes['on'])}"
    what = what if len(what) <= 90 else f"{len(axes['model'])} models on {len(axes['on'])} machines"
    if "fits" not in counts and "tight" not in counts:
        others = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in counts)
        return f"none of {all_of} fits: {what}: {others}"
    fit = (
        f"{counts['fits']:,} of {all_of} fit" if "fits" in counts else f"tight: {counts['tight']:,} of {all_of} may fit"
    )
    best = made.best.get(made.key.name)
    if not best:
        return f"{fit}: {what}"
    cell = made.cells[best[0]]
    at = [label(made, number, [cell]) for number, axis in enumerate(made.axes) if axis.varies and axis.name != "on"]
    where = ", ".join([*at[:1], cell.row["on"], *at[1:]] if made.axes[0].varies else [cell.row["on"], *at])
    return f"{fit}: {what}; best: {where}: {_figure(made.key, cell.row)} {made.key.short}"


def _pivoted(made: Comparison, across: Pivot, figures: Sequence[Column], width: int) -> list[str]:
    """Blocks of columns, each as wide as a terminal; every block has the labels of its lines."""
    lines = across.lines[:MOST_ROWS]
    labels = _padded([across.down, *(line.labels for line in lines)])
    groups = [_group(made, [line.cells[at] for line in lines], across, at, figures) for at in range(len(across.heads))]
    blocks: list[list[list[str]]] = [[]]
    room = width - len(labels[0])
    for group in groups:
        if blocks[-1] and sum(len(each[0]) + len(GROUP_GAP) for each in (*blocks[-1], group)) > room:
            blocks.append([])
        blocks[-1].append(group)
    text: list[str] = []
    for block in blocks:
        text += [""] if text else []
        heads = (" " * len(labels[0]), labels[0], "-" * len(labels[0]), *labels[1:])
        text += [GROUP_GAP.join([head, *(group[at] for group in block)]).rstrip() for at, head in enumerate(heads)]
    return [*text, *_cut(len(across.lines), "lines")]


def _group(made: Comparison, numbers: Sequence[int], across: Pivot, at: int, figures: Sequence[Column]) -> list[str]:
    """The lines of one column: its head, the headings of its figures, a rule, and its cells; all of one width."""
    heads = ["", *(column.short for column in figures)]
    cells = [_cell(made, number, across, figures) for number in numbers]
    widths = [max(len(row[i]) for row in [heads, *(each for each in cells if not isinstance(each, str))]) for i in range(len(heads))]  # fmt: skip
    laid = [each if isinstance(each, str) else _right(each, widths) for each in cells]
    head = f"{across.across} {across.heads[at]}"
    whole = max(map(len, (head, _right(heads, widths), *laid)))
    spare = whole - len(_right(heads, widths))
    widths[-1] += spare
    laid = [each if isinstance(each, str) else _right(each, widths) for each in cells]
    return [line.ljust(whole) for line in (head, _right(heads, widths), "-" * whole, *laid)]


def _cell(made: Comparison, number: int, across: Pivot, figures: Sequence[Column]) -> list[str] | str:
    """Mark and figures of what fits; words for what does not."""
    cell = made.cells[number]
    if cell.row["verdict"] not in ("fits", *MARKS):
        return _why_not(made, cell)
    mark = MARKS.get(cell.row["verdict"], "") + ("*" if number in across.best else "")
    return [mark, *(_figure(column, cell.row) for column in figures)]


def _in_one(made: Comparison, number: int, across: Pivot, figures: Sequence[Column]) -> str:
    """A cell of Markdown: its figures with what they are, bold where it is the best of its column."""
    cell = _cell(made, number, across, figures)
    if isinstance(cell, str):
        return cell
    said = [f"{text}{column.short}" if column.name == "accelerators" else f"{text} {column.short}"
            for text, column in zip(cell[1:], figures, strict=True) if text != "-"]  # fmt: skip
    text = f"{cell[0].rstrip('*')} {', '.join(said) or 'fits'}".strip()
    return bold(text) if number in across.best else text


def _why_not(made: Comparison, cell: Cell) -> str:
    row = cell.row
    if row["verdict"] == "does not fit":
        return f"no: {100 * row['needed_bytes'] / row['usable_bytes']:.0f} %"
    number = reasons(made).get(row["reason"])
    return f"{row['verdict']}{f' [{number}]' if number else ''}"


def _rows(made: Comparison, figures: Sequence[Column], width: int) -> list[str]:
    """A line for each cell; figures are left out from the end but one where the terminal is too narrow."""
    kept = list(figures)
    while True:
        header = _row_header(made, kept)
        lines = table_lines([_row_cells(made, number, kept, star) for number in _first(made)], header)
        if max(map(len, lines)) <= width or len(kept) <= 2:
            break
        kept.pop(-2)
    left = [column.short for column in figures if column not in kept]
    return [*lines, *_cut(len(made.cells), "rows"), *([f"too wide for this terminal: {', '.join(left)}"] if left else [])]  # fmt: skip


def _row_header(made: Comparison, figures: Sequence[Column]) -> list[str]:
    return [*(axis.name for axis in made.axes if axis.varies), "verdict", *(column.short for column in figures)]


def _row_cells(made: Comparison, number: int, figures: Sequence[Column], mark: Callable[[str], str]) -> list[str]:
    cell = made.cells[number]
    labels = [label(made, at, [cell]) for at, axis in enumerate(made.axes) if axis.varies]
    best = made.best
    said = _why_not(made, cell) if cell.row["verdict"] not in ("fits", *MARKS) else cell.row["verdict"]
    return [*labels, said, *(mark(text) if number in best.get(column.name, ()) and _tells(made, column) else text
                             for column in figures for text in [_figure(column, cell.row)])]  # fmt: skip


def _tells(made: Comparison, column: Column) -> bool:
    """Whether being the best says something: not where half of the rows are."""
    return 2 * len(made.best[column.name]) <= len(made.cells)


def star(text: str) -> str:
    return f"{text}*"


def bold(text: str) -> str:
    return f"**{text}**"


def _first(made: Comparison) -> range:
    return range(min(len(made.cells), MOST_ROWS))


def _cut(all_of: int, what: str) -> list[str]:
    return (
        [f"and {all_of - MOST_ROWS:,} more {what}: --csv, --json and --parquet have all"] if all_of > MOST_ROWS else []
    )


def _legend(made: Comparison, figures: Sequence[Column]) -> list[str]:
    words = [f"{column.short}: {column.about}" for column in figures if column.about]
    found = made.counts
    marks = [f"{mark}: {SAID[mark]}" for mark in ("*", *(MARKS[verdict] for verdict in MARKS if verdict in found))]
    marks[0] += f", by {made.key.short}" if made.across is not None else ""
    lacking = ["no: % of what is usable that is needed"] if "does not fit" in found else []
    return [f"{'; '.join([*words, *marks, *lacking])}"]


def _notes(made: Comparison) -> list[str]:
    """Why cells have no answer, and what all of them noted."""
    why = [f"[{number}] {reason}" for reason, number in reasons(made).items()]
    cut = [f"and {len(why) - MOST_NOTES} more reasons: --csv and --json have all"] if len(why) > MOST_NOTES else []
    notes = made.notes
    said = [each for each, number in notes.items() if number * FEW >= len(made.cells)][:MOST_NOTES]
    some = [f"note ({notes[each]:,} of {len(made.cells):,}): {each}" for each in said]
    more = [f"and {len(notes) - len(said)} more notes of some cells: --json has all"] if len(notes) > len(said) else []
    return [*why[:MOST_NOTES], *cut, *(f"note: {each}" for each in made.warnings), *some, *more]


def _figure(column: Column, row: Any) -> str:
    """A figure under a heading that says what it is."""
    value = row[column.name]
    if value is None:
        return "-"
    if column.name == "accelerators":
        paid = row.get("accelerators_paid") or value
        return f"{value:,}" if paid == value else f"{value:,}/{paid:,}"
    if column.name == "mfu":
        return f"{100 * value:.1f} %"
    if column.unit == "USD":
        return f"{value:,.0f}" if value >= 1000 else human(value, "USD").removesuffix(" USD")
    if column.unit in ("bytes", "seconds"):
        return human(value, column.unit)
    return f"{value:,.0f}" if value >= 100 or isinstance(value, int) else f"{value:.3g}"


def _setting(name: str, value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _padded(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _right(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(zip(cells, widths, strict=True)))  # fmt: skip


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
