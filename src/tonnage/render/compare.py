"""A comparison as lines of text, or as Markdown. A renderer lays out and computes nothing else."""

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any

from tonnage.render.text import table_lines
from tonnage.search.compare import Comparison
from tonnage.search.compare.columns import Column
from tonnage.search.compare.pivot import Pivot, label, pivot, reasons, settings, shown
from tonnage.units import counted, human

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
    table = _Table(made, show, rows=rows)
    common = [f"  {name:<28} {_setting(value)}" for name, value in settings(made).items()]
    legend = wrap(table.legend("*"), min(width, WIDTH), break_on_hyphens=False)
    return [
        table.first_line(),
        "",
        *common,
        *([""] if common else []),
        *table.lines(width),
        "",
        *legend,
        *table.notes(),
    ]


def comparison_markdown(made: Comparison, *, show: Sequence[str] = (), rows: bool = False) -> str:
    """The same as Markdown, which GitHub shows as a table."""
    table = _Table(made, show, rows=rows)
    header, *body = table.markdown_rows()
    common = ", ".join(f"{name} {_setting(value)}" for name, value in settings(made).items() if name != "model")
    lines = [_pipes(header), _pipes(["---"] * len(header)), *map(_pipes, body)]
    below = [f"- {each}" for each in (table.legend("**bold**"), *table.notes())]
    return "\n".join([f"**{table.first_line()}**", "", *([common, ""] if common else []), *lines, "", *below]) + "\n"


class _Table:
    """What is read from a comparison once: its table across, if it has one, its figures, the best, and the reasons by number."""

    def __init__(self, made: Comparison, show: Sequence[str], *, rows: bool):
        self.made, self.cells = made, made.cells
        self.across = None if rows else pivot(made)
        self.figures = shown(made, show, across=self.across is not None)
        self.best, self.reasons, self.counts = made.best, reasons(made), made.counts

    def first_line(self) -> str:
        """How many fit, and the best of them."""
        made, counts, all_of = self.made, self.counts, f"{len(self.cells):,}"
        axes = {axis.name: axis.labels for axis in made.axes}
        what = f"{', '.join(axes['model'])} on {', '.join(axes['on'])}"
        what = what if len(what) <= 90 else f"{len(axes['model'])} models on {len(axes['on'])} machines"
        if "fits" not in counts and "tight" not in counts:
            return (
                f"none of {all_of} fits: {what}; {', '.join(f'{verdict}: {counts[verdict]:,}' for verdict in counts)}"
            )
        fit = f"{counts['fits']:,} of {all_of} fit" if "fits" in counts else f"tight: {counts['tight']:,} of {all_of}"
        best = self.best.get(made.key.name)
        if not best:
            return f"{fit}: {what}"
        cell = self.cells[best[0]]
        at = [label(made, number, [cell]) for number, axis in enumerate(made.axes) if axis.varies and axis.name != "on"]
        where = ", ".join([*at[:1], cell.row["on"], *at[1:]] if len(axes["model"]) > 1 else [cell.row["on"], *at])
        return f"{fit}: {what}; best: {where}: {_figure(made.key, cell.row)} {made.key.short}"

    def lines(self, width: int) -> list[str]:
        return self._rows(width) if self.across is None else self._pivoted(self.across, width)

    def markdown_rows(self) -> list[list[str]]:
        """The header and the cells of each line."""
        if self.across is None:
            return [self._header(self.figures), *(self._row(number, self.figures, _bold) for number in self._first)]
        across = self.across
        header = [*across.down, *(f"{across.across} {head}" for head in across.heads)]
        return [header, *([*line.labels, *(self._in_one(number, across) for number in line.cells)] for line in across.lines[:MOST_ROWS])]  # fmt: skip

    def legend(self, best_mark: str) -> str:
        """What headings and marks mean, of those that there are."""
        words = [f"{column.short}: {column.about}" for column in self.figures if column.about]
        if any(column.name == "accelerators" for column in self.figures) and any(_part_paid(cell.row) for cell in self.cells):  # fmt: skip
            words.append("2/8: two accelerators, of eight that are paid for")
        by = f", by {self.made.key.short}" if self.across is not None else ""
        best = [f"{best_mark}: {SAID['*']}{by}"] if self.best else []
        marks = [f"{mark}: {SAID[mark]}" for verdict, mark in MARKS.items() if verdict in self.counts]
        lacking = ["no: does not fit, and needs so much of what is usable"] if "does not fit" in self.counts else []
        return "; ".join([*words, *best, *marks, *lacking])

    def notes(self) -> list[str]:
        """Why cells have no answer, and what all of them noted."""
        why = [f"[{number}] {reason}" for reason, number in self.reasons.items()]
        cut = [f"and {len(why) - MOST_NOTES} more: --csv and --json have all"] if len(why) > MOST_NOTES else []
        notes = self.made.notes
        said = [each for each, number in notes.items() if number * FEW >= len(self.cells)][:MOST_NOTES]
        some = [f"note ({notes[each]:,} of {len(self.cells):,}): {each}" for each in said]
        left = len(notes) - len(said)
        more = [f"and {counted(left, 'more notes')} of some cells: --json has all"] if left else []
        return [*why[:MOST_NOTES], *cut, *(f"note: {each}" for each in self.made.warnings), *some, *more]

    def _pivoted(self, across: Pivot, width: int) -> list[str]:
        """Blocks of columns, each as wide as a terminal; every block has the labels of its lines."""
        lines = across.lines[:MOST_ROWS]
        labels = _padded([across.down, *(line.labels for line in lines)])
        groups = [self._group([line.cells[at] for line in lines], across, at) for at in range(len(across.heads))]
        blocks: list[list[list[str]]] = [[]]
        room = width - len(labels[0])
        for group in groups:
            if blocks[-1] and sum(len(each[0]) + len(GROUP_GAP) for each in (*blocks[-1], group)) > room:
                blocks.append([])
            blocks[-1].append(group)
        heads = (" " * len(labels[0]), labels[0], "-" * len(labels[0]), *labels[1:])
        text: list[str] = []
        for block in blocks:
            text += [""] if text else []
            text += [GROUP_GAP.join([head, *(group[at] for group in block)]).rstrip() for at, head in enumerate(heads)]
        return [*text, *_cut(len(across.lines), "lines")]

    def _group(self, numbers: Sequence[int], across: Pivot, at: int) -> list[str]:
        """The lines of one column: its head, the headings of its figures, a rule, and its cells; all of one width."""
        heads = ["", *(column.short for column in self.figures)]
        cells = [self._cell(number, across) for number in numbers]
        widths = [max(len(row[i]) for row in [heads, *(each for each in cells if not isinstance(each, str))]) for i in range(len(heads))]  # fmt: skip
        head = f"{across.across} {across.heads[at]}"
        whole = max(len(head), len(_right(heads, widths)), *(len(each) for each in cells if isinstance(each, str)), 0)
        widths[-1] += whole - len(_right(heads, widths))
        laid = [each if isinstance(each, str) else _right(each, widths) for each in cells]
        return [line.ljust(whole) for line in (head, _right(heads, widths), "-" * whole, *laid)]

    def _cell(self, number: int, across: Pivot) -> list[str] | str:
        """Mark and figures of what fits; words for what does not."""
        row = self.cells[number].row
        if row["verdict"] not in ("fits", *MARKS):
            return self._verdict(row)
        mark = MARKS.get(row["verdict"], "") + ("*" if number in across.best else "")
        return [mark, *(_figure(column, row) for column in self.figures)]

    def _in_one(self, number: int, across: Pivot) -> str:
        """A cell of Markdown: its figures with what they are, bold where it is the best of its column."""
        cell = self._cell(number, across)
        if isinstance(cell, str):
            return cell
        said = [f"{text}{column.short}" if column.name == "accelerators" else f"{text} {column.short}"
                for text, column in zip(cell[1:], self.figures, strict=True) if text != "-"]  # fmt: skip
        text = f"{cell[0].rstrip('*')} {', '.join(said) or 'fits'}".strip()
        return _bold(text) if number in across.best else text

    def _verdict(self, row: Any) -> str:
        """The verdict in a few words, with the number of its reason."""
        if row["verdict"] == "does not fit":
            return f"no: {100 * row['needed_bytes'] / row['usable_bytes']:.0f} %"
        return f"{row['verdict']} [{self.reasons[row['reason']]}]" if row["reason"] else str(row["verdict"])

    def _rows(self, width: int) -> list[str]:
        """A line for each cell; figures are left out from the end but one where the terminal is too narrow."""
        kept = list(self.figures)
        while True:
            body = [self._row(number, kept, _star) for number in self._first]
            ends = [any(row[at].endswith("*") for row in body) for at in range(len(body[0]))]
            body = [[f"{text} " if end and text != "-" and not text.endswith("*") else text for text, end in zip(row, ends, strict=True)] for row in body]  # fmt: skip
            lines = table_lines(body, self._header(kept))
            if max(map(len, lines)) <= width or len(kept) <= 2:
                break
            kept.pop(-2)
        left = [column.short for column in self.figures if column not in kept]
        return [*lines, *_cut(len(self.cells), "rows"), *([f"too wide for this terminal: {', '.join(left)}"] if left else [])]  # fmt: skip

    def _header(self, figures: Sequence[Column]) -> list[str]:
        return [
            *(axis.name for axis in self.made.axes if axis.varies),
            "verdict",
            *(column.short for column in figures),
        ]

    def _row(self, number: int, figures: Sequence[Column], mark: Callable[[str], str]) -> list[str]:
        cell = self.cells[number]
        labels = [label(self.made, at, [cell]) for at, axis in enumerate(self.made.axes) if axis.varies]
        best = [number in (rows := self.best.get(column.name, ())) and 2 * len(rows) <= len(self.cells) for column in figures]  # fmt: skip
        texts = [_figure(column, cell.row) for column in figures]
        return [*labels, self._verdict(cell.row), *(mark(text) if at else text for text, at in zip(texts, best, strict=True))]  # fmt: skip

    @property
    def _first(self) -> range:
        return range(min(len(self.cells), MOST_ROWS))


def _figure(column: Column, row: Any) -> str:
    """A figure under a heading that says what it is."""
    value = row[column.name]
    if value is None:
        return "-"
    if column.name == "accelerators":
        return f"{value:,}/{row['accelerators_paid']:,}" if _part_paid(row) else f"{value:,}"
    if column.name == "mfu":
        return f"{100 * value:.1f} %"
    if column.unit == "USD":
        return f"{value:,.0f}" if value >= 1000 else human(value, "USD").removesuffix(" USD")
    if column.unit in ("bytes", "seconds"):
        return human(value, column.unit)
    return f"{value:,.0f}" if value >= 100 or isinstance(value, int) else f"{value:.3g}"


def _part_paid(row: Any) -> bool:
    """Whether more is rented than is used."""
    return bool(row["accelerators_paid"] and row["accelerators_paid"] > row["accelerators"])


def _setting(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _star(text: str) -> str:
    return f"{text}*"


def _bold(text: str) -> str:
    return f"**{text}**"


def _cut(all_of: int, what: str) -> list[str]:
    return (
        [f"and {all_of - MOST_ROWS:,} more {what}: --csv, --json and --parquet have all"] if all_of > MOST_ROWS else []
    )


def _padded(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _right(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(zip(cells, widths, strict=True)))  # fmt: skip


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.strip().replace('|', chr(92) + '|') for cell in cells)} |"
