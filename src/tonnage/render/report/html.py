"""A report as one HTML file: it asks no network, runs no script, and prints its decision on one page of A4."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any
from zlib import crc32

from tonnage.language import current, say, worded
from tonnage.render.report._blocks import Bars, Block, Brief, Cell, Facts, Figure, Listed, Report, Said, Section, Table
from tonnage.render.report._sources import Node, citations, nodes
from tonnage.render.report._style import patterns, style
from tonnage.render.report._svg import bars_svg, plane_svg

# Nothing but this file may be asked for anything, and no script runs: it is not left to trust.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
TAGS = {"en": "en", "zh": "zh-CN"}
GLYPHS = {
    "fits": (
        '<circle cx="12" cy="12" r="11" fill="currentColor"/><path d="M6.5 12.5l4 4 7-8" stroke="var(--bg,#fff)" '
        'stroke-width="2.4" fill="none"/>'
    ),
    "tight": (
        '<path d="M12 1.5L23.5 22H.5Z" fill="currentColor"/><path d="M12 9v6M12 17.4v2.2" '
        'stroke="var(--bg,#fff)" stroke-width="2.4"/>'
    ),
    "no": (
        '<path d="M1 1H23V23H1Z" fill="currentColor"/><path d="M7 7L17 17M17 7L7 17" stroke="var(--bg,#fff)" '
        'stroke-width="2.4"/>'
    ),
    "unknown": (
        '<circle cx="12" cy="12" r="10" fill="none" stroke="currentColor" stroke-width="2"/><path d="M9 9.5a3 3 '
        '0 1 1 4 2.8c-.8.4-1 .9-1 1.9M12 16.4v2.2" stroke="currentColor" stroke-width="2" fill="none"/>'
    ),
}


NUMBER = re.compile(r"[-−+]?\d[\d,.]*(?:\s|$)|[-−]$")
NAME = 44  # letters of a name that is not broken over lines
MANY = 8  # columns of a table that is set smaller


class _Writer:
    """Blocks as HTML. `linked`: figures lead to where the appendix says how they came about."""

    def __init__(self, prefix: str, linked: frozenset[str] = frozenset()):
        self.prefix, self.linked = prefix, linked

    def block(self, block: Block) -> str:
        match block:
            case Said(text, "code"):
                return f"<pre>{escape(text)}</pre>" if text else ""
            case Said(text, kind):
                return f'<p class="{kind}">{escape(text)}</p>'
            case Listed(rows, _):
                return f"<ul>{''.join(f'<li>{escape(row)}</li>' for row in rows)}</ul>"
            case Facts(rows):
                return f'<div class="wide"><table>{"".join(map(self._fact, rows))}</table></div>'
            case Table():
                return self._table(block)
            case Bars():
                return f"<figure>{bars_svg(block, self.prefix)}{_legend(block, self.prefix)}</figure>"
        return f"<figure>{plane_svg(block)}</figure>"

    def section(self, section: Section) -> str:
        return f"<section><h2>{escape(section.title)}</h2>{''.join(map(self.block, section.blocks))}</section>"

    def _fact(self, row: tuple[str, Cell, str]) -> str:
        name, value, note = row
        whole = ' class="name"' if len(name) <= NAME else ""
        return (
            (
                f'<tr><td{whole}>{escape(name)}</td><td class="v">{self._cell(value)}</td><td '
                f'class="note">{escape(note)}</td></tr>'
            )
            if cell_text(value)
            else (f'<tr><td{whole}>{escape(name)}</td><td colspan="2" class="note">{escape(note)}</td></tr>')
        )

    def _cell(self, cell: Cell) -> str:
        path = cell.path if isinstance(cell, Figure) else ""
        text = escape(cell_text(cell))
        return f'<a href="#{anchor(path)}">{text}</a>' if path in self.linked else text

    def _table(self, table: Table) -> str:
        right = [_is_number(table, at) for at in range(len(table.header))]
        head = "".join(
            f'<th scope="col"{_right(right[at])}>{escape(name)}</th>' for at, name in enumerate(table.header)
        )
        body = []
        for number, row in enumerate(table.rows):
            deep = f' style="padding-left:{14 * table.deep[number]}px"' if table.deep else ""
            cells = "".join(
                f"<td{deep if not at else ''}{_right(right[at])}>{self._cell(cell)}</td>" for at, cell in enumerate(row)
            )
            strong = ' class="strong"' if number in table.strong else ""
            body.append(f"<tr{strong}>{cells}</tr>")
        many = " many" if len(table.header) >= MANY else ""
        return (
            f'<div class="wide{many}"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
        )


def page(report: Report) -> str:
    """The whole file."""
    prefix = f"t{crc32(report.title.encode()):x}"
    opened = {path: list(nodes(term, path)) for path, term in report.opened.items()}
    writer = _Writer(prefix, frozenset(node.path for found in opened.values() for node in found))
    body = [
        patterns(prefix),
        brief_html(report.brief, writer.section, _made(report)),
        *map(writer.section, report.sections),
        *([writer.section(whole)] if (whole := whole_command(report)) else []),
        _appendix(opened),
        _bibliography(report.opened.values()),
    ]
    inside = "\n".join(each for each in body if each)
    return (
        f'<!DOCTYPE html>\n<html lang="{TAGS[current()]}">\n<head>\n<meta charset="utf-8">\n<meta '
        'name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        f'content="{POLICY}">\n<title>{escape(report.title)}</title>\n<style>{style(whole=True)}</style>\n</head>\n<body>\n'
        f'<main class="tonnage">\n{inside}\n</main>\n</body>\n</html>\n'
    )


def brief_html(brief: Brief, section: Any, end: str) -> str:
    """What is printed on the first page."""
    return (
        f'<section class="brief"><p class="asks">{escape(brief.question)}</p>{verdict_html(brief)}'
        f"{''.join(map(section, brief.sections))}{end}</section>"
    )


def verdict_html(brief: Brief) -> str:
    glyph = f'<svg viewBox="0 0 24 24" class="{brief.kind}" aria-hidden="true">{GLYPHS[brief.kind]}</svg>'
    return f'<div class="verdict">{glyph}<h1>{escape(brief.verdict)}</h1></div>'


def notebook(report: Report) -> str:
    """The verdict, what it is made of, and the first of the details: a part of another page, with its own style."""
    prefix = f"t{crc32(report.title.encode()):x}"
    writer = _Writer(prefix)
    body = "".join(map(writer.section, (report.brief.sections[0], *report.sections[:1])))
    return (
        "<div "
        f'class="tonnage"><style>{style(whole=False)}</style>{patterns(prefix)}{verdict_html(report.brief)}{body}</div>'
    )


def anchor(path: str) -> str:
    return "f-" + "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in path)


def _made(report: Report) -> str:
    """What asks it again, and which tonnage said it, when."""
    again = (
        f"<h2>{escape(say('Ask it again'))}</h2><pre>{escape(short(report.command))}</pre>" if report.command else ""
    )
    said = say(
        "tonnage {version}, {date}. Estimates, not measurements, unless a figure says so.",
        version=report.version,
        date=report.date,
    )
    return f'<section>{again}<p class="made">{escape(said)}</p></section>'


def whole_command(report: Report) -> Section | None:
    """Of a command that is too long for the first page."""
    cut = short(report.command) != report.command
    return Section(say("Ask it again"), (Said(report.command, "code"),)) if cut else None


def short(command: str, most: int = 400) -> str:
    return command if len(command) <= most else f"{command[:most]}…"


def _legend(picture: Bars, prefix: str) -> str:
    kinds = {part.name: part.kind for bar in picture.bars for part in bar.parts}
    made = [
        (
            '<span><svg viewBox="0 0 16 10" aria-hidden="true"><rect width="16" height="10" '
            f'fill="url(#{prefix}-{kind})"/></svg>{escape(name)}</span>'
        )
        for name, kind in kinds.items()
    ]
    if any(bar.band for bar in picture.bars):
        made.append(
            '<span><svg viewBox="0 0 16 10" aria-hidden="true"><path d="M1 1v8M15 1v8M1 5H15" '
            f'stroke="currentColor" stroke-width="1.5"/></svg>{escape(say("error band"))}</span>'
        )
    return f'<div class="legend">{"".join(made)}</div>'


def _appendix(opened: Mapping[str, list[Node]]) -> str:
    if not opened:
        return ""
    made = "".join(_opened(found) for found in opened.values())
    said = say("Every figure with its formula, the numbers put in, and its source. Open what should be printed.")
    return (
        f'<section class="appendix"><h2>{escape(say("Appendix: where each figure comes from"))}</h2><p '
        f'class="note">{escape(said)}</p>{made}</section>'
    )


def _opened(found: list[Node]) -> str:
    first = found[0]
    head = f"<summary>{escape(worded(first.name))}: {escape(first.value)}</summary>"
    return f"<details>{head}{''.join(map(_node, found))}</details>"


def _node(node: Node) -> str:
    codes = "".join(f"<code>{escape(code)}</code>" for code in node.codes)
    source = f'<span class="note">{escape(node.source)}</span>' if node.source else ""
    value = escape(node.value) + (f" = {escape(node.exact)}" if node.exact else "")
    return (
        f'<div class="node" id="{anchor(node.path)}" '
        f'style="--deep:{node.depth}"><b>{escape(worded(node.name))}</b> {value} '
        f'<span class="note">{escape(worded(node.basis))}</span>{codes}{source}</div>'
    )


def _bibliography(terms: Any) -> str:
    found = citations(terms)
    if not found:
        return ""
    rows = "".join(f"<li><b>{escape(key)}</b>: {escape(text)}</li>" for key, text in found.items())
    return f"<section><h2>{escape(say('Sources'))}</h2><ul>{rows}</ul></section>"


def cell_text(cell: Cell) -> str:
    return cell.text if isinstance(cell, Figure) else cell


def _is_number(table: Table, at: int) -> bool:
    """Whether a column has numbers alone, with their units: they end at one edge. 8xH100 is a name."""
    texts = [cell_text(row[at]) for row in table.rows]
    return at > 0 and any(texts) and all(not text or NUMBER.match(text) for text in texts)


def _right(is_right: bool) -> str:
    return ' class="r"' if is_right else ""
