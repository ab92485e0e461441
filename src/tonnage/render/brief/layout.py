"""Lines of the short text at one width: fields, tables, commands that can be copied. Text is laid out once, as runs of
(text, style); a terminal colours the runs, elsewhere they are printed as they are, so meaning never rests on a colour.

In a text, `backticks` mark what can be typed. A number stays beside its unit, and nothing is cut: what is too long goes
on under its field. What does not fit in 24 lines is left out by blocks, the least important first.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from tonnage.language import current, say, say_as
from tonnage.language.columns import left
from tonnage.language.columns import width as columns

MAX_LINES, MAX_WIDTH, MIN_WIDTH, PIPED_WIDTH = 24, 120, 40, 80
LABEL_CELLS = {"en": 9, "zh": 6}
MIN_FIRST, MIN_LAST = 24, 12  # cells of the first and the last column of a table
WHOLE_CODE = 44  # cells of an option that does not break
GAP = "\u2003"  # two blanks between items, where a line may break
GLUE = "\u00a0"  # a blank that does not break
Runs = list[tuple[str, str]]

HAN = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef\u201c\u201d"
_HAN = re.compile(rf"[{HAN}]")
_CODE = re.compile(r"(`[^`]*`)")
WHOLE_HAN = "用户|请求|芯片|秒|层|行|项|卡|个"  # stands behind a number, and does not break
_UNIT = re.compile(
    r"(?<=[\d)?]) (?=(?:[KMGT]i?B(?:/s)?|[un]?s|ms|min|h|d|USD|%|[MBT]|tokens?(?:/s)?|GPUs?|chips?|users?|"
    rf"requests?(?:/s)?|nodes?|bytes?)(?![\w-])|{WHOLE_HAN})"
)
_TOKEN = re.compile(rf"{GAP}| +|{WHOLE_HAN}|[{HAN}]|[^ {GAP}{HAN}]+")
_OPTION = re.compile(r" (?=-)")
_PIECE = re.compile(r" (?=-)|(?<=,) ")  # of a cell: an option, or a key of another tool's file with its value
NEVER_FIRST, NEVER_LAST = frozenset("，。、；：）”！？"), frozenset("（“")


def terminal_width() -> int:
    """Columns of the terminal, or of COLUMNS; 80 where output goes elsewhere; at most 120."""
    named = os.environ.get("COLUMNS", "")
    if named.isdigit() and int(named) > 0:
        width = int(named)
    else:
        try:
            width = os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError, AttributeError):
            width = 0
    return max(MIN_WIDTH, min(width or PIPED_WIDTH, MAX_WIDTH))


class Column(Struct, frozen=True):
    """A column of a table. `keep`: where the table is too wide, the column with the lowest goes first."""

    head: str
    align: str = "r"
    keep: int = 9


class Page:
    """The short text of one answer at one width, in the current language."""

    def __init__(self, width: int) -> None:
        self.width = max(MIN_WIDTH, min(width, MAX_WIDTH))
        self.indent = LABEL_CELLS.get(current(), LABEL_CELLS["en"])
        self._blocks: list[list[tuple[int, list[Runs]]]] = []  # forms of each, the longest first
        self._uncounted: set[int] = set()  # places of blocks that `-v` does not have either: the following question
        self._more: tuple[int, Sequence[str]] | None = None

    # ---- what is written, from above

    def block(self, lines: list[Runs], *shorter: tuple[int, list[Runs]]) -> None:
        """Lines that stay together. `shorter`: what may stand there instead where there are too many lines, each with
        its order: the highest is taken first. No lines at all leave the block out.
        """
        self._blocks.append([(0, lines), *shorter])

    def blank(self) -> None:
        """An empty line between groups."""
        self.block([[]])

    def verdict(self, text: str, tone: str) -> None:
        """The first line: its word in the colour of the verdict."""
        end = min((at for at in (text.find(": "), text.find("：")) if at >= 0), default=-1)
        head, rest = (text[:end], text[end:]) if end >= 0 else (text, "")
        self.block(self._wrapped([(_glued(head), tone), (_glued(rest), "")], [], 0, 2))

    def dim(self, text: str, drop: int = 0) -> None:
        """What the answer is about, or the key of a table."""
        self.block(self.dim_lines(text), *_left_out(drop))

    def dim_lines(self, text: str) -> list[Runs]:
        """Lines of what is said beside the answer."""
        return self._wrapped(_runs(text, "dim"), [], 0, 2)

    def field(self, label: str, *texts: str, drop: int = 0) -> None:
        """A label and its text; further texts begin on lines of their own. `label` is English."""
        self.block(self._field(label, texts), *_left_out(drop))

    def options(self, label: str, flags: Sequence[str], *, most: int = 6, fewer: int, drop: int) -> None:
        """Options. `fewer`, `drop`: the orders in which two of them, and all of them, are left out."""
        shown = list(flags[:most])
        if not shown:
            return
        forms = [(drop, list[Runs]())]
        if len(shown) > 2:
            rest = say("+{count} with `-v`", count=2)
            forms.insert(0, (fewer, self._field(label, [GAP.join([*(f"`{flag}`" for flag in shown[:-2]), rest])])))
        self.block(self._field(label, [GAP.join(f"`{flag}`" for flag in shown)]), *forms)

    def field_lines(self, label: str, *texts: str) -> list[Runs]:
        """The lines of a field."""
        return self._field(label, texts)

    def more(self, first: str, *others: str) -> None:
        """Where to look further. `first` has what is left out here, whose lines are counted behind it."""
        self._more = (len(self._blocks), others)
        self.field("more", GAP.join((first, *others)))

    def command(self, label: str, command: str, drop: int = 0) -> None:
        """A command that can be copied: a line ends before an option, with a backslash."""
        if label == "next":
            self._uncounted.add(len(self._blocks))
        self.block(self._command(label, command), *_left_out(drop))

    def table(self, header: Sequence[Column], rows: Sequence[Sequence[str]], *, bold: int | None = 0) -> None:
        """Columns as wide as their widest cell, at the left edge. An option in the first column goes on below it."""
        self.block(self.table_lines(header, rows, bold=bold))

    def table_lines(
        self, header: Sequence[Column], rows: Sequence[Sequence[str]], *, bold: int | None = 0, label: str = ""
    ) -> list[Runs]:
        """The lines of a table; with `label` it stands in a field."""
        keep = list(range(len(header)))
        start = self.indent if label else 0
        while True:
            widths = [max(_cells(row[at]) for row in [[one.head for one in header], *rows]) for at in keep]
            last = min(widths[-1], MIN_LAST) if header[keep[-1]].align == "l" else widths[-1]
            room = self.width - start - sum(widths[1:-1]) - last - 2 * (len(keep) - 1)
            least = min(widths[0], MIN_FIRST)
            if room >= least or len(keep) <= 2:
                break
            keep.remove(min(keep[1:], key=lambda at: header[at].keep))
        widths[0] = min(widths[0], max(room, least))
        lines: list[Runs] = []
        for number, row in enumerate([[one.head for one in header], *rows]):
            style = "dim" if number == 0 else "bold" if bold is not None and number == bold + 1 else ""
            lead = self.label(label if number == 0 else "") if label else []
            first, *below = _option_lines(row[keep[0]], widths[0])
            line: Runs = [*lead, *_padded(first, widths[0], "l", style)]
            for position, at in enumerate(keep[1:], 1):
                line.append(("  ", ""))
                if position == len(keep) - 1 and header[at].align == "l":
                    lines += self._wrapped(_runs(row[at], style), line, _taken(line))
                    break
                line += _padded(row[at], widths[position], header[at].align, style)
            else:
                lines.append(line)
            lines += [[(" " * start, ""), *_runs(part, style)] for part in below]
        return lines

    # ---- what it looks like

    def lines(self, most: int = MAX_LINES) -> list[Runs]:
        """The lines, at most so many as far as blocks may be left out."""
        blocks = [list(forms) for forms in self._blocks]
        taken: list[tuple[list[tuple[int, list[Runs]]], tuple[int, list[Runs]]]] = []
        while len(_shown(blocks)) > most:
            longer = [forms for forms in blocks if len(forms) > 1]
            if not longer:
                break
            forms = max(longer, key=lambda forms: forms[1][0])
            taken.append((forms, forms.pop(0)))
        for forms, longest in reversed(taken):  # what was taken first may have room again
            forms.insert(0, longest)
            if len(_shown(blocks)) > most:
                forms.pop(0)
        return self._counted(blocks)

    def _counted(self, blocks: list[list[tuple[int, list[Runs]]]]) -> list[Runs]:
        """The lines; the last ones say how many are left out, where that takes no line more."""
        places = [at for at in range(len(blocks)) if at not in self._uncounted]
        count = sum(max(len(self._blocks[at][0][1]) - len(blocks[at][0][1]), 0) for at in places)
        if count and self._more is not None:
            at, others = self._more
            text = (
                say("`-v` all figures, +1 line") if count == 1 else say("`-v` all figures, +{count} lines", count=count)
            )
            longer = self._field("more", [GAP.join((text, *others))])
            if len(longer) == len(blocks[at][0][1]):
                blocks[at] = [(0, longer)]
        return _shown(blocks)

    def text(self, most: int = MAX_LINES) -> list[str]:
        """The lines as plain text."""
        return [plain(line) for line in self.lines(most)]

    def _field(self, label: str, texts: Sequence[str]) -> list[Runs]:
        lines: list[Runs] = []
        for number, text in enumerate(texts):
            lines += self._wrapped(_runs(text), self.label(label if not number else ""), self.indent)
        return lines

    def label(self, label: str) -> Runs:
        """The label of a field, in its column."""
        shown = say_as("label", label) if label else ""
        return [(left(shown, self.indent), "label")]

    def _command(self, label: str, command: str) -> list[Runs]:
        lines, line, used, first = [], self.label(label), self.indent, True
        pieces = list(self._pieces(command))
        for number, piece in enumerate(pieces):
            tail = 2 if number + 1 < len(pieces) else 0
            if not first and used + 1 + columns(piece) + tail > self.width:
                lines.append([*line, (" \\", "dim")])
                line, used, first = [(" " * (self.indent + 2), "")], self.indent + 2, True
            line.append((piece if first else f" {piece}", "code"))
            used += columns(piece) + (not first)
            first = False
        return [*lines, line]

    def _pieces(self, command: str) -> Iterator[str]:
        """Options with their values; apart where both together are wider than a line."""
        for piece in _OPTION.split(command):
            if columns(piece) + self.indent + 4 > self.width:
                yield from piece.split(" ")
            else:
                yield piece

    def _wrapped(self, runs: Runs, first: Runs, indent: int, hang: int = 0) -> list[Runs]:
        """Lines of words; those after the first are indented."""
        lines, line, used, begins = [], list(first), _taken(first), True
        for word, blank in _words(runs):
            size = sum(columns(text) for text, _ in word)
            if not begins and used + len(blank) + size > self.width:
                lines.append(line)
                line, used, begins = [(" " * (indent + hang), "")], indent + hang, True
            if not begins and blank:
                line.append((blank, ""))
                used += len(blank)
            line += word
            used += size
            begins = False
        return [*lines, line]

    def wrapped_items(self, items: Sequence[Runs]) -> list[Runs]:
        """Items two blanks apart in the column of the fields, none of them broken."""
        lines: list[Runs] = []
        line: Runs = [(" " * self.indent, "")]
        used = self.indent
        for item in items:
            size = _taken(item)
            if used > self.indent and used + 2 + size > self.width:
                lines.append(line)
                line, used = [(" " * self.indent, "")], self.indent
            if used > self.indent:
                line.append(("  ", ""))
                used += 2
            line += item
            used += size
        return [*lines, line]


def plain(line: Runs) -> str:
    """A line without its styles."""
    return "".join(text for text, _ in line).replace(GLUE, " ").rstrip()


def plain_text(lines: Callable[[int], list[Runs]]) -> str:
    """What `lines` gives at the width of the terminal, as plain text."""
    return "\n".join(map(plain, lines(terminal_width())))


def _shown(blocks: Sequence[Sequence[tuple[int, list[Runs]]]]) -> list[Runs]:
    """The lines of the first form of each block, with one empty line at most between groups and none at the end."""
    lines: list[Runs] = []
    for forms in blocks:
        for line in forms[0][1]:
            if line or (lines and lines[-1]):
                lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _left_out(order: int) -> list[tuple[int, list[Runs]]]:
    """That a block is left out at this order; never at 0."""
    return [(order, [])] if order else []


def _taken(runs: Runs) -> int:
    return sum(columns(text) for text, _ in runs)


def _cells(cell: str) -> int:
    return columns(cell.replace("`", ""))


def _padded(cell: str, width: int, align: str, style: str) -> Runs:
    blanks = (" " * (width - _cells(cell)), "")
    return [blanks, *_runs(cell, style)] if align == "r" else [*_runs(cell, style), blanks]


def _option_lines(cell: str, width: int) -> list[str]:
    """A cell of options over as many lines as it needs."""
    if _cells(cell) <= width:
        return [cell]
    code = cell.startswith("`")
    lines: list[str] = []
    for piece in _PIECE.split(cell.strip("`")) if code else cell.split(" "):
        if lines and columns(lines[-1]) + 1 + columns(piece) <= width:
            lines[-1] += f" {piece}"
        elif code and columns(piece) > width and " " in piece:
            lines += piece.split(" ")
        else:
            lines.append(piece)
    return [f"`{line}`" for line in lines] if code else lines


def _runs(text: str, style: str = "") -> Runs:
    """Runs of a text; code that is short does not break."""
    runs: Runs = []
    for piece in _CODE.split(text):
        if piece.startswith("`") and piece.endswith("`") and len(piece) > 1:
            code = piece[1:-1]
            runs.append((code.replace(" ", GLUE) if len(code) <= WHOLE_CODE else code, "code"))
        elif piece:
            runs.append((_glued(piece), style))
    return runs


def _glued(text: str) -> str:
    """Numbers stay beside their units, and what becomes of a figure beside what it was."""
    return _UNIT.sub(GLUE, text).replace(" -> ", f"{GLUE}->{GLUE}")


def _words(runs: Runs) -> list[tuple[Runs, str]]:
    """What does not break, each with the blank before it."""
    words: list[tuple[Runs, str]] = []
    blank = previous = ""
    for text, style in runs:
        for found in _TOKEN.findall(text):
            if not found.strip(f" {GAP}"):
                blank, previous = "  " if found == GAP else " ", ""
                continue
            token = found.replace(GLUE, " ")
            between_han = bool(previous) and bool(_HAN.match(token) or _HAN.match(previous))
            breakable = between_han and token[0] not in NEVER_FIRST and previous not in NEVER_LAST
            if words and not blank and not breakable:
                words[-1][0].append((token, style))
            else:
                words.append(([(token, style)], blank))
            blank, previous = "", token[-1]
    return words
