"""The short text of a comparison: its best, one table, what its marks mean."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.documents.document import builtins
from tonnage.kernel.message import Message
from tonnage.language import say, say_as, worded
from tonnage.language.columns import left
from tonnage.language.columns import width as columns
from tonnage.render.brief.layout import GAP, MAX_LINES, Column, Page, Runs
from tonnage.render.brief.numbers import column_unit, count
from tonnage.render.brief.serving import engine_of, load_of
from tonnage.render.brief.training import kind_of
from tonnage.render.brief.words import (
    ASSUMED,
    BETTER,
    FEWER_ASSUMED,
    FLAGS,
    NEXT,
    NOTE,
    accelerator_of,
    add_notes,
    assumed,
    flag,
    value_of,
)
from tonnage.render.compared_figures import figure_text, short_formats
from tonnage.render.tone import Toned
from tonnage.runtimes import has_serving_runtime
from tonnage.search.compare import Comparison
from tonnage.search.compare.columns import Column as Figure
from tonnage.search.compare.pivot import ENCODED, label, pivot, shown

UNCHECKED = "there are no published runs on {chip} "  # how notes begin that say so
ASSUMED_NAMES = ("input_tokens", "output_tokens", "kv_cache", "sequence_length", "micro_batch_size", "precision")
HEADS = {
    "accelerators": "GPUs",
    "requests_that_fit": "room",
    "tpot_seconds": "TPOT",
    "ttft_seconds": "TTFT",
    "usd_per_million_tokens": "USD/M",
    "usd_per_billion_tokens": "USD/B",
    "needed_bytes": "GiB",
    "step_seconds": "step",
    "tokens_per_second": "tokens/s",
}
ANSWERED = ("fits", "tight", "not served")
MAX_ROWS = 12
BEST, BACKED, NO_RUNS = "*", "+", "?"


def comparison_text(comparison: Comparison, width: int, *, show: Sequence[str] = (), rows: bool = False) -> list[Runs]:
    """The lines of a comparison, at most 24."""
    return comparison_page(comparison, width, show=show, rows=rows).lines(MAX_LINES)


def comparison_page(comparison: Comparison, width: int, *, show: Sequence[str] = (), rows: bool = False) -> Page:
    """`show`: the figures that were asked for; `rows`: a line for each cell."""
    page = Page(width)
    line = verdict_line(comparison)
    page.verdict(line, line.tone)
    page.dim(_subject(comparison))
    page.blank()
    table = _Table(comparison, show, rows=rows)
    forms = [table.lines(page, most) for most in (MAX_ROWS, 8, 5, 3)]
    page.block(forms[0], (NOTE + 2, forms[1]), (BETTER + 1, forms[2]), (BETTER, forms[3]))
    page.blank()
    settings = builtins(dict(comparison.settings))
    page.options(
        "assumed", [*_machines(comparison), *assumed(settings, ASSUMED_NAMES)], fewer=FEWER_ASSUMED, drop=ASSUMED
    )
    _add_better(page, comparison)
    add_notes(page, [*comparison.warnings, *_reasons(comparison)], most=1)
    page.blank()
    if command := _try(comparison):
        page.command("try", command, drop=NEXT)
    page.field(
        "more",
        GAP.join([say("`-v` all notes"), say("`--rows` one line per cell"), "`--csv`", "`--json`", "`--html FILE`"]),
    )
    return page


def verdict_line(comparison: Comparison) -> Toned:
    """How many fit, and the best of them."""
    counts, number = comparison.counts, len(comparison.cells)
    fits = counts.get("fits", 0)
    limited = any(axis.name in ("ttft", "tpot") and axis.values != (None,) for axis in comparison.axes)
    if fits == number and number > 1:
        head = say("both fit") if number == 2 else say("all {count} fit", count=count(number))
    elif fits:
        head = say("{fits} of {count} fit", fits=count(fits), count=count(number))
    elif "tight" in counts:
        head = say("tight: {tight} of {count}, none fits for sure", tight=count(counts["tight"]), count=count(number))
    else:
        what = say(", ").join(f"{say(verdict)} {amount:,}" for verdict, amount in counts.items())
        return Toned(say("none of {count} fits: {what}", count=count(number), what=what), "bad")
    if limited and fits:
        head = say("{head} and meet the targets", head=head)
    best = comparison.best.get(comparison.key.name)
    if not best:
        return Toned(head, "good" if fits else "warn")
    cell = comparison.cells[best[0]]
    figure = figure_text(comparison.key, cell.row, short_formats())
    unit = _unit(comparison.key)
    what = say("{where}, {figure}", where=_where(comparison, best[0]), figure=f"{figure} {unit}".rstrip())
    if _unchecked(cell):
        what = say("{what} (speed unchecked)", what=what)
    line = say("{head}; {goal}: {what}", head=head, goal=_goal(comparison.key), what=what)
    return Toned(line, "good" if fits else "warn")


def _goal(key: Figure) -> str:
    return say_as("goal", "cheapest") if key.unit == "USD" else say("best")


def _unit(key: Figure) -> str:
    units = {
        "usd_per_million_tokens": "USD/M tokens",
        "usd_per_billion_tokens": "USD/B tokens",
        "usd_per_audio_hour": say("USD per hour of sound"),
    }
    return units.get(key.name, say(key.short) if key.unit not in ("seconds", "bytes") else "")


def _where(comparison: Comparison, number: int) -> str:
    """The machine of a cell, and its place on the axes that vary."""
    cell = comparison.cells[number]
    places = [
        _axis(axis.name, label(comparison, at, [cell]))
        for at, axis in enumerate(comparison.axes)
        if axis.varies and axis.name != "on"
    ]
    return say(", ").join([str(cell.row["on"]), *places])


def _axis(name: str, text: str) -> str:
    """A value of an axis: a model or a precision by itself, another as it is typed."""
    if name in ("model", "weights", "precision"):
        return text
    return f"--{FLAGS.get(name, name).replace('_', '-')} {text.replace(',', '')}"


def _heading(name: str) -> str:
    """The heading of an axis whose values are lines."""
    return say(name) if name in ("model", "weights", "precision") else f"--{FLAGS.get(name, name).replace('_', '-')}"


def _subject(comparison: Comparison) -> str:
    """Model, engine or kind of training, load."""
    models = next(axis.labels for axis in comparison.axes if axis.name == "model")
    model = ", ".join(models) if len(models) <= 2 else say("{count} models", count=len(models))
    question = {**builtins(dict(comparison.settings)), **_single(comparison)}
    if comparison.verb == "train":
        varies = any(axis.varies and axis.name == "method" for axis in comparison.axes)
        return say("{model}: {kind}", model=model, kind=say("training") if varies else kind_of(question))
    what = say(", ").join(filter(None, (model, _runner(question))))
    load = load_of(question)
    return say("{what}; {load}", what=what, load=load) if load else what


def _runner(question: Mapping[str, Any]) -> str:
    """The engine, or the tool that was asked for with the engine that it runs on."""
    name, engine = str(value_of(question, "engine") or ""), engine_of(question)
    if not name or has_serving_runtime(name):
        return engine
    from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS
    from tonnage.runtimes.parts.tool import find_tool

    tool = find_tool(ENGINE_TOOLS, name)
    return f"{tool.title} ({engine})" if tool else engine


def _machines(comparison: Comparison) -> list[str]:
    """Which accelerator a name stands for, where it does not say so itself."""
    at = next(number for number, axis in enumerate(comparison.axes) if axis.name == "on")
    names = {}
    for cell in comparison.cells:
        typed, accelerator = comparison.axes[at].labels[cell.at[at]], cell.row.get("accelerator")
        if accelerator and accelerator.lower() != accelerator_of(typed).lower():
            names[accelerator_of(typed)] = accelerator
    return [f"{typed}: {accelerator}" for typed, accelerator in names.items()]


def _single(comparison: Comparison) -> dict[str, Any]:
    """Inputs that have one value in all cells, as entries of a question."""
    return {
        axis.name: {"value": axis.values[0], "from": "given"}
        for axis in comparison.axes
        if not axis.varies and axis.values[0] is not None
    }


def _unchecked(cell: Any) -> bool:
    """Whether rates of its machine were fitted to no published run."""
    return any(isinstance(note, Message) and note.template.startswith(UNCHECKED) for note in cell.warnings)


class _Table:
    """The table across, or a line for each cell; each with its figures and marks."""

    def __init__(self, comparison: Comparison, show: Sequence[str], *, rows: bool) -> None:
        self.made = comparison
        self.across = None if rows else pivot(comparison)
        self.figures = shown(comparison, show, across=self.across is not None)
        self.marks: set[str] = set()
        if self.across is not None:
            self.heads: tuple[str, ...] = tuple(_axis(self.across.across, head) for head in self.across.heads)
            self.down: tuple[str, ...] = self.across.down
            self.rows = [(line.labels, line.cells) for line in self.across.lines]
        else:
            vary = [number for number, axis in enumerate(comparison.axes) if axis.varies]
            self.heads, self.down = ("",), tuple(comparison.axes[number].name for number in vary)
            self.rows = [
                (tuple(label(comparison, axis, [cell]) for axis in vary), (number,))
                for number, cell in enumerate(comparison.cells)
            ]
        self.units = {
            column.name: column_unit(cell.row[column.name] for cell in comparison.cells if cell.row[column.name])
            for column in self.figures
        }
        self.best = [self._best([cells[at] for _, cells in self.rows]) for at in range(len(self.heads))]

    def _best(self, numbers: list[int]) -> tuple[set[int], set[int]]:
        """The best cells of a column, and the best of those whose machine has published runs, where these differ."""
        key = self.made.key
        best = set(self.made.best_among(numbers).get(key.name, ()))
        backed = [number for number in numbers if not _unchecked(self.made.cells[number])]
        others = set(self.made.best_among(backed).get(key.name, ())) - best if len(backed) < len(numbers) else set()
        return best, others if not any(number in best for number in backed) else set()

    def lines(self, page: Page, most: int) -> list[Runs]:
        """Rows of the table, as many of its columns as the width takes, and the key below it."""
        self.marks = set()
        groups = list(range(len(self.heads)))
        shown_rows = self._order()[:most]
        while True:
            header, rows, starts = self._cells(groups, shown_rows)
            widths = [
                max(columns(column.head), *(columns(row[at]) for row in rows)) for at, column in enumerate(header)
            ]
            if sum(widths) + 2 * (len(widths) - 1) <= page.width or len(groups) == 1:
                break
            groups.pop()
        lines = page.table_lines(header, rows, bold=None)
        if any(self.heads):
            lines.insert(0, [(_group_line(self.heads, groups, starts, widths), "bold")])
        hidden = [self.heads[at] for at in range(len(self.heads)) if at not in groups]
        keys = self._keys(len(self.rows) - len(shown_rows), hidden)
        for key in keys:
            lines += page.dim_lines(key)
        return lines

    def _order(self) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
        """The rows as they come; where there are too many, those with the best cells stay."""
        if len(self.rows) <= MAX_ROWS:
            return self.rows
        first = {number for best, backed in self.best for number in (*best, *backed)}
        return sorted(self.rows, key=lambda row: not any(number in first for number in row[1]))

    def _cells(self, groups: Sequence[int], rows: Sequence[tuple[tuple[str, ...], tuple[int, ...]]]) -> Any:
        """Header, cells and the columns at which groups start."""
        header = [Column("" if name == "on" else _heading(name), "l") for name in self.down]
        starts = []
        for _ in groups:
            starts.append(len(header))
            header += [
                Column(say_as("column", HEADS.get(one.name, one.short)), keep=9 - at)
                for at, one in enumerate(self.figures)
            ]
            header.append(Column("", "l"))
        body = []
        for labels, numbers in rows:
            row = list(labels)
            if any(_unchecked(self.made.cells[number]) for number in numbers) and "on" in self.down:
                row[self.down.index("on")] += f" {NO_RUNS}"
                self.marks.add(NO_RUNS)
            for at in groups:
                row += self._group(numbers[at], at)
            body.append(row)
        return header, body, starts

    def _group(self, number: int, at: int) -> list[str]:
        """The figures of one cell and its mark; its verdict where it has no figures."""
        row = self.made.cells[number].row
        if row["verdict"] not in ANSWERED:
            word = say(str(row["verdict"]))
            if row["verdict"] == "does not fit":
                self.marks.add("no")
                word = say("no")
            return [word, *("" for _ in self.figures[1:]), ""]
        best, backed = self.best[at]
        mark = BEST if number in best else BACKED if number in backed else ""
        mark = mark or {"tight": "~", "not served": "!"}.get(row["verdict"], "")
        self.marks.add(mark)
        return [*(figure_text(column, row, short_formats(self.units[column.name])) for column in self.figures), mark]

    def _keys(self, hidden_rows: int, hidden: Sequence[str]) -> list[str]:
        """What marks and headings mean, and what is not shown."""
        goal = _goal(self.made.key)
        marks = {
            BEST: say("* {goal}", goal=goal),
            BACKED: say("+ {goal} backed by runs", goal=goal),
            NO_RUNS: say("? no published runs on this machine"),
            "~": say("~ tight"),
            "!": say("! misses the targets"),
            "no": say("no: does not fit with the defaults"),
        }
        keys = [GAP.join(text for mark, text in marks.items() if mark in self.marks)]
        names = {column.name for column in self.figures}
        words = []
        if "requests_that_fit" in names:
            words.append(say("room: requests of the whole context in the KV cache"))
        if "usd_per_million_tokens" in names and ENCODED.keys() & names:
            words.append(say("USD/M: per million tokens"))
        elif "usd_per_million_tokens" in names:
            words.append(say("USD/M: per million tokens, input + output"))
        if "usd_per_billion_tokens" in names:
            words.append(say("USD/B: per billion tokens"))
        keys += [say("; ").join(words)] if words else []
        if hidden_rows > 0:
            keys.append(say("{count} more rows with `-v`", count=count(hidden_rows)))
        if hidden:
            keys.append(say("not shown here, but with `-v`: {names}", names=say(", ").join(hidden)))
        return [key for key in keys if key]


def _group_line(heads: Sequence[str], groups: Sequence[int], starts: Sequence[int], widths: Sequence[int]) -> str:
    """The heads of groups above their columns."""
    line = ""
    for group, start in zip(groups, starts, strict=True):
        at = sum(width + 2 for width in widths[:start])
        line = left(line, at) + heads[group]
    return line


def _reasons(comparison: Comparison) -> list[str]:
    """Why cells have no answer, each once."""
    reasons = [str(cell.row["reason"]) for cell in comparison.cells if cell.row["reason"]]
    return [worded(reason) for reason in dict.fromkeys(reasons)]


def _add_better(page: Page, comparison: Comparison) -> None:
    """The best of the machines that have published runs, where the first line names one that has none."""
    best = comparison.best.get(comparison.key.name)
    if not best or not _unchecked(comparison.cells[best[0]]):
        return
    backed = [number for number, cell in enumerate(comparison.cells) if not _unchecked(cell)]
    others = comparison.best_among(backed).get(comparison.key.name)
    if others:
        figure = figure_text(comparison.key, comparison.cells[others[0]].row, short_formats())
        figure = f"{figure} {_unit(comparison.key)}".rstrip()
        text = say("backed by runs: {where}, {figure}", where=_where(comparison, others[0]), figure=figure)
        page.field("better", text, drop=BETTER)


def _try(comparison: Comparison) -> str:
    """The question of the best cell by itself; of one backed by runs where there is one."""
    backed = [number for number, cell in enumerate(comparison.cells) if not _unchecked(cell)]
    best = comparison.best_among(backed).get(comparison.key.name) or comparison.best.get(comparison.key.name)
    if not best:
        return ""
    cell = comparison.cells[best[0]]
    flags = ""
    model = ""
    for axis, at in zip(comparison.axes, cell.at, strict=True):
        value = axis.values[at]
        if axis.name == "model":
            model = axis.labels[at]
        elif axis.name not in ("on", "count") and value is not None and isinstance(value, str | int | float):
            flags += f" {flag(axis.name, value)}"
    return f"tonnage {comparison.verb} {model} --on {cell.row['on']}{flags}"
