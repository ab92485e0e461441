"""A comparison as lines of text, or as Markdown. A renderer lays out and computes nothing else."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from tonnage.language import current, say, worded
from tonnage.language.columns import left, right, wrapped
from tonnage.language.columns import width as columns
from tonnage.language.quantities import counted, human_column
from tonnage.render.compared_figures import WHOLE, figure_text
from tonnage.render.prompts import with_prompts
from tonnage.render.text import table_lines
from tonnage.render.tone import Tone, Toned
from tonnage.search.compare import Comparison
from tonnage.search.compare.columns import Column, ran
from tonnage.search.compare.pivot import Pivot, differing, label, part_paid, pivot, reasons, settings, shown

WIDTH = 150  # where no terminal says how wide it is
MAX_ROWS = 60  # of a table for people: --csv and --json have all
MAX_NOTES = 8
MAX_LOADS = 6  # workloads whose best is said above the table
FEW = 10  # what less than a tenth of the cells noted is not shown
GAP, GROUP_GAP = "  ", "   "
MARKS = {"tight": "~", "not served": "!"}
SAID = {
    "*": "best of its column",
    "each": "best of its column for its workload",
    "~": "tight: what is usable lies inside the error band",
    "!": "fits, but does not answer as asked",
}


def comparison_lines(
    comparison: Comparison, *, show: Sequence[str] = (), rows: bool = False, width: int = WIDTH
) -> list[str]:
    """The best, what all cells have in common, the table, what its words mean, and why cells have no answer."""
    table = _Table(comparison, show, rows=rows)
    common = [f"  {left(name, 28)} {value}" for name, value in _common(comparison)]
    legend = _wrapped(table.legend("*"), min(width, WIDTH))
    return [
        table.first_line(),
        *(f"  {line}" for line in table.best_lines()),
        "",
        *common,
        *([""] if common else []),
        *table.lines(width),
        "",
        *legend,
        *table.notes(),
    ]


def comparison_markdown(comparison: Comparison, *, show: Sequence[str] = (), rows: bool = False) -> str:
    """The comparison as Markdown, which GitHub shows as a table."""
    table = _Table(comparison, show, rows=rows)
    header, *body = table.markdown_rows()
    common = say(", ").join(f"{name} {value}" for name, value in _common(comparison) if name != "model")
    lines = [_pipes(map(say, header)), _pipes(["---"] * len(header)), *map(_pipes, body)]
    below = [f"- {bullet}" for bullet in (table.legend(_bold(say("bold"))), *table.notes())]
    best = [f"- {line}" for line in table.best_lines()]
    above = [*([*best, ""] if best else []), *([common, ""] if common else [])]
    return "\n".join([f"**{table.first_line()}**", "", *above, *lines, "", *below]) + "\n"


class _Table:
    """What is read from a comparison once: its table across, if it has one, its figures, the best, and the reasons
    by number.
    """

    def __init__(self, comparison: Comparison, show: Sequence[str], *, rows: bool):
        self.made, self.cells = comparison, comparison.cells
        self.across = None if rows else pivot(comparison)
        self.figures = shown(comparison, show, across=self.across is not None)
        self._columns: dict[str, list[str]] = {}  # those of bytes and of seconds, in one unit each
        self.best, self.reasons, self.counts = _marked(comparison), reasons(comparison), comparison.counts

    def first_line(self) -> str:
        """How many fit, and the best of them."""
        comparison, counts, all_of = self.made, self.counts, f"{len(self.cells):,}"
        axes = {axis.name: axis.labels for axis in comparison.axes}
        what = say("{model} on {on}", model=", ".join(axes["model"]), on=", ".join(axes["on"]))
        what = (
            what
            if len(what) <= 90
            else say("{models} models on {machines} machines", models=len(axes["model"]), machines=len(axes["on"]))
        )
        if "fits" not in counts and "tight" not in counts:
            verdicts = say(", ").join(f"{say(verdict)}{say(': ')}{counts[verdict]:,}" for verdict in counts)
            return say("none of {all_of} fits: {what}; {verdicts}", all_of=all_of, what=what, verdicts=verdicts)
        fit = (
            say("{fits} of {all_of} fit", fits=f"{counts['fits']:,}", all_of=all_of)
            if "fits" in counts
            else say("tight: {tight} of {all_of}", tight=f"{counts['tight']:,}", all_of=all_of)
        )
        tone: Tone = "plain" if "fits" in counts else "warn"
        if not self.best.get(comparison.key.name):
            return Toned(f"{fit}{say(': ')}{what}", tone)
        if comparison.loads:
            return Toned(say("{fit}: {what}; the best of each workload:", fit=fit, what=what), tone)
        where, figure = self._best(comparison.best)
        best_of = say("{fit}: {what}; best: {where}: {figure}", fit=fit, what=what, where=where, figure=figure)
        return Toned(best_of, tone)

    def best_lines(self) -> list[str]:
        """The best of each workload, where there are several: one is no rival of another."""
        comparison, lines = self.made, []
        for at, numbers in list(comparison.workloads.items())[:MAX_LOADS]:
            values = ", ".join(
                f"{comparison.axes[axis].name} {comparison.axes[axis].shown(place)}"
                for axis, place in zip(comparison.loads, at, strict=True)
            )
            best = comparison.best_among(numbers)
            where, figure = self._best(best) if comparison.key.name in best else ("", "")
            lines.append(
                say("{values}: {where}: {figure}", values=values, where=where, figure=figure)
                if where
                else say("{values}: none fits", values=values)
            )
        more = len(comparison.workloads) - len(lines)
        return [*lines, *([say("and {count} more", count=more)] if more else [])]

    def _best(self, best: Mapping[str, list[int]]) -> tuple[str, str]:
        """Where the best cell is, beside its workload, and its figure."""
        comparison = self.made
        cell = self.cells[best[comparison.key.name][0]]
        at = [
            label(comparison, number, [cell])
            for number, axis in enumerate(comparison.axes)
            if axis.varies and axis.name != "on" and number not in comparison.loads
        ]
        models = next(axis.varies for axis in comparison.axes if axis.name == "model")
        where = ", ".join([*at[:1], cell.row["on"], *at[1:]] if models else [cell.row["on"], *at])
        figure = figure_text(comparison.key, cell.row, WHOLE)
        return where, f"{figure} {say(comparison.key.short)}{self._whose_prices()}"

    def _whose_prices(self) -> str:
        """Beside a figure of money whose prices it has, where single answers have cheaper ones."""
        names = self.made.providers
        if not names or not self.made.key.name.startswith(("usd", "run_usd")):
            return ""
        return (
            say(" (prices of {provider})", provider=names[0])
            if len(names) == 1
            else say(" (prices of several providers)")
        )

    def lines(self, width: int) -> list[str]:
        return self._rows(width) if self.across is None else self._pivoted(self.across, width)

    def markdown_rows(self) -> list[list[str]]:
        """The header and the cells of each line."""
        if self.across is None:
            return [self._header(self.figures), *(self._row(number, self.figures, _bold) for number in self._first)]
        across = self.across
        header = [*across.down, *(f"{across.across} {head}" for head in across.heads)]
        return [
            header,
            *(
                [*line.labels, *(self._in_one(number, across) for number in line.cells)]
                for line in across.lines[:MAX_ROWS]
            ),
        ]

    def _about(self, column: Column) -> str:
        """What a figure is; of a time to the first token with the length of the prompts, where all cells have the
        same.
        """
        if column.name != "ttft_seconds":
            return say(column.about)
        lengths = {cell.row.get("input_tokens") for cell in self.cells} - {None}
        if len(lengths) > 1:
            return say("{name} ({prompts})", name=say(column.about), prompts=say("prompts of input_tokens"))
        return with_prompts(say(column.about), {"input_tokens": next(iter(lengths), None)})

    def legend(self, best_mark: str) -> str:
        """What headings and marks mean, of those that there are."""
        words = [f"{say(column.short)}{say(': ')}{self._about(column)}" for column in self.figures if column.about]
        if any(column.name == "accelerators" for column in self.figures) and any(
            part_paid(cell.row) for cell in self.cells
        ):
            words.append(say("2/8: two accelerators, of eight that are paid for"))
        by = say(", by {name}", name=say(self.made.key.short)) if self.across is not None else ""
        alone = all(axis == self.made.across and self.across is not None for axis in self.made.loads)
        star = SAID["*" if alone else "each"]
        best = [f"{best_mark}{say(': ')}{say(star)}{by}"] if self.best else []
        marks = [f"{mark}{say(': ')}{say(SAID[mark])}" for verdict, mark in MARKS.items() if verdict in self.counts]
        lacking = (
            [say("no: does not fit, and needs so much of what is usable")] if "does not fit" in self.counts else []
        )
        return say("; ").join([*words, *best, *marks, *lacking])

    def notes(self) -> list[str]:
        """Why cells have no answer, and what all of them noted."""
        why = [f"[{number}] {worded(reason)}" for reason, number in self.reasons.items()]
        cut = (
            [say("and {why_count} more: --csv and --json have all", why_count=len(why) - MAX_NOTES)]
            if len(why) > MAX_NOTES
            else []
        )
        notes = self.made.notes
        common = [note for note, number in notes.items() if number * FEW >= len(self.cells)][:MAX_NOTES]
        some = [
            say(
                "note ({notes} of {cells_count}): {each}",
                notes=f"{notes[note]:,}",
                cells_count=f"{len(self.cells):,}",
                each=worded(note),
            )
            for note in common
        ]
        more = len(notes) - len(common)
        rest = [say("and {more} of some cells: --json has all", more=counted(more, "more notes"))] if more else []
        return [
            *why[:MAX_NOTES],
            *cut,
            *(say("note: {what}", what=worded(note)) for note in self.made.warnings),
            *some,
            *rest,
        ]

    def _pivoted(self, across: Pivot, width: int) -> list[str]:
        """Blocks of columns, each as wide as a terminal; every block has the labels of its lines."""
        lines = across.lines[:MAX_ROWS]
        labels = _padded([across.down, *(line.labels for line in lines)])
        groups = [self._group([line.cells[at] for line in lines], across, at) for at in range(len(across.heads))]
        blocks: list[list[list[str]]] = [[]]
        room = width - columns(labels[0])
        for group in groups:
            if blocks[-1] and sum(columns(column[0]) + len(GROUP_GAP) for column in (*blocks[-1], group)) > room:
                blocks.append([])
            blocks[-1].append(group)
        blank = columns(labels[0])
        heads = (" " * blank, labels[0], "-" * blank, *labels[1:])
        text: list[str] = []
        for block in blocks:
            text += [""] if text else []
            text += [GROUP_GAP.join([head, *(group[at] for group in block)]).rstrip() for at, head in enumerate(heads)]
        return [*text, *_cut(len(across.lines), "lines")]

    def _group(self, numbers: Sequence[int], across: Pivot, at: int) -> list[str]:
        """The lines of one column: its head, the headings of its figures, a rule, and its cells; all of one width."""
        heads = ["", *(say(column.short) for column in self.figures)]
        cells = [self._cell(number, across) for number in numbers]
        widths = [
            max(columns(row[i]) for row in [heads, *(cell for cell in cells if not isinstance(cell, str))])
            for i in range(len(heads))
        ]
        head = f"{across.across} {across.heads[at]}"
        width = max(
            columns(head),
            columns(_right(heads, widths)),
            *(columns(cell) for cell in cells if isinstance(cell, str)),
            0,
        )
        widths[-1] += width - columns(_right(heads, widths))
        laid = [cell if isinstance(cell, str) else _right(cell, widths) for cell in cells]
        return [left(line, width) for line in (head, _right(heads, widths), "-" * width, *laid)]

    def _cell(self, number: int, across: Pivot) -> list[str] | str:
        """Mark and figures of what fits; words for what does not."""
        row = self.cells[number].row
        if row["verdict"] not in ("fits", *MARKS):
            return self._verdict(row)
        mark = MARKS.get(row["verdict"], "") + ("*" if number in across.best else "")
        return [mark, *(self._figure(column, number) for column in self.figures)]

    def _figure(self, column: Column, number: int) -> str:
        """A figure of a cell, in the unit of its column."""
        row = self.cells[number].row
        if column.unit not in ("bytes", "seconds") or row[column.name] is None or not ran(column, row):
            return figure_text(column, row, WHOLE)
        if column.name not in self._columns:
            values = [cell.row[column.name] if ran(column, cell.row) else None for cell in self.cells]
            self._columns[column.name] = human_column(values, column.unit)
        return self._columns[column.name][number]

    def _in_one(self, number: int, across: Pivot) -> str:
        """A cell of Markdown: its figures with what they are, bold where it is the best of its column."""
        cell = self._cell(number, across)
        if isinstance(cell, str):
            return cell
        figures = [
            f"{text}{say(column.short)}" if column.name == "accelerators" else f"{text} {say(column.short)}"
            for text, column in zip(cell[1:], self.figures, strict=True)
            if text != "-"
        ]
        text = f"{cell[0].rstrip('*')} {say(', ').join(figures) or say('fits')}".strip()
        return _bold(text) if number in across.best else text

    def _verdict(self, row: Any) -> str:
        """The verdict in a few words, with the number of its reason."""
        if row["verdict"] == "does not fit":
            return say("no: {needed_bytes} %", needed_bytes=f"{100 * row['needed_bytes'] / row['usable_bytes']:.0f}")
        return f"{say(row['verdict'])} [{self.reasons[row['reason']]}]" if row["reason"] else say(str(row["verdict"]))

    def _rows(self, width: int) -> list[str]:
        """A line for each cell; figures are left out from the end but one where the terminal is too narrow."""
        shown_figures = list(self.figures)
        while True:
            body = [self._row(number, shown_figures, _star) for number in self._first]
            ends = [any(row[at].endswith("*") for row in body) for at in range(len(body[0]))]
            body = [
                [
                    f"{text} " if end and text != "-" and not text.endswith("*") else text
                    for text, end in zip(row, ends, strict=True)
                ]
                for row in body
            ]
            lines = table_lines(body, self._header(shown_figures))
            if max(map(columns, lines)) <= width or len(shown_figures) <= 2:
                break
            shown_figures.pop(-2)
        dropped = [say(column.short) for column in self.figures if column not in shown_figures]
        return [
            *lines,
            *_cut(len(self.cells), "rows"),
            *([say("too wide for this terminal: {dropped}", dropped=", ".join(dropped))] if dropped else []),
        ]

    def _header(self, figures: Sequence[Column]) -> list[str]:
        return [
            *(axis.name for axis in self.made.axes if axis.varies),
            "verdict",
            *(column.short for column in figures),
        ]

    def _row(self, number: int, figures: Sequence[Column], mark: Callable[[str], str]) -> list[str]:
        cell = self.cells[number]
        labels = [label(self.made, at, [cell]) for at, axis in enumerate(self.made.axes) if axis.varies]
        best = [
            number in (rows := self.best.get(column.name, ())) and 2 * len(rows) <= len(self.cells)
            for column in figures
        ]
        texts = [self._figure(column, number) for column in figures]
        return [
            *labels,
            self._verdict(cell.row),
            *(mark(text) if at else text for text, at in zip(texts, best, strict=True)),
        ]

    @property
    def _first(self) -> range:
        return range(min(len(self.cells), MAX_ROWS))


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, break_on_hyphens=False) if current() == "en" else wrapped(text, width)


def _marked(comparison: Comparison) -> dict[str, list[int]]:
    """The rows that are best for a workload, by column."""
    by_column: dict[str, list[int]] = {}
    for numbers in comparison.workloads.values() or [range(len(comparison.cells))]:
        for name, best in comparison.best_among(numbers).items():
            by_column.setdefault(name, []).extend(best)
    return by_column


def _common(comparison: Comparison) -> list[tuple[str, str]]:
    """What all cells have in common, and what some took that others did not."""
    pairs = [(name, _setting(value)) for name, value in settings(comparison).items()]
    for name, values in differing(comparison).items():
        counts = [
            say("{value} ({where})", value=_setting(value), where=where) if where else _setting(value)
            for value, where in values
        ]
        pairs.append((name, say("; ").join(counts)))
    return pairs


def _setting(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return worded(str(value)) if " " in str(value) else str(value)  # a word alone is the name of a choice


def _star(text: str) -> str:
    return f"{text}*"


def _bold(text: str) -> str:
    return f"**{text}**"


def _cut(all_of: int, what: str) -> list[str]:
    return (
        [
            say(
                "and {all_of} more {name}: --csv, --json and --parquet have all",
                all_of=f"{all_of - MAX_ROWS:,}",
                name=say(what),
            )
        ]
        if all_of > MAX_ROWS
        else []
    )


def _padded(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [GAP.join(left(cell, width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _right(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(
        right(cell, width) if at else left(cell, width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )


def _pipes(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.strip().replace('|', chr(92) + '|') for cell in cells)} |"
