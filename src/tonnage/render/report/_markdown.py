"""A report as Markdown, for a pull request or a wiki: the same blocks, bars as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tonnage.language import say, worded
from tonnage.language.columns import left, width
from tonnage.language.quantities import human
from tonnage.render.report._blocks import Bar, Bars, Block, Cell, Facts, Listed, Plane, Report, Said, Section, Table
from tonnage.render.report._sources import citations, nodes
from tonnage.render.report.html import cell_text

LETTERS = {
    "weights": "W",
    "gradients": "G",
    "optimizer": "O",
    "activations": "A",
    "temporary": "T",
    "comm": "C",
    "kv": "K",
    "overhead": "R",
    "forward": "1",
    "backward": "2",
    "exchange": "3",
    "update": "4",
    "rest": "5",
}
WIDE = 60  # letters of the longest bar
ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]|#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})
MARKS = {"fits": "✅", "tight": "⚠️", "no": "❌", "unknown": "❔"}


def markdown(report: Report) -> str:
    """The whole text."""
    brief = report.brief
    lines = [f"# {MARKS[brief.kind]} {plain(brief.verdict)}", "", f"*{plain(brief.question)}*", ""]
    for section in brief.sections:
        lines += _section(section, "##")
    if report.command:
        lines += [f"## {say('Ask it again')}", "", *_code(report.command), ""]
    said = say(
        "tonnage {version}, {date}. Estimates, not measurements, unless a figure says so.",
        version=report.version,
        date=report.date,
    )
    lines += [plain(said), "", f"# {say('Details')}", ""]
    for section in report.sections:
        lines += _section(section, "##")
    lines += [*_appendix(report.opened), *_bibliography(report.opened)]
    return "\n".join(lines).rstrip() + "\n"


def short(report: Report) -> str:
    """The verdict, what it is made of, and the first of the details."""
    brief = report.brief
    lines = [f"**{MARKS[brief.kind]} {plain(brief.verdict)}**", ""]
    for section in (brief.sections[0], *report.sections[:1]):
        lines += _section(section, "####")
    return "\n".join(lines).rstrip() + "\n"


def plain(text: str) -> str:
    """Text that Markdown and HTML leave as it is, on one line."""
    return " ".join(text.split()).translate(ESCAPED)


def _section(section: Section, mark: str) -> list[str]:
    found = [f"{mark} {plain(section.title)}", ""]
    for block in section.blocks:
        found += [*_block(block), ""]
    return found


def _block(block: Block) -> list[str]:
    match block:
        case Said(text, "code"):
            return _code(text) if text else []
        case Said(text, _):
            return [plain(text)]
        case Listed(rows, _):
            return [f"- {plain(row)}" for row in rows]
        case Facts(rows):
            return _table(("", "", ""), rows)
        case Table(header, rows, strong, deep):
            return _table(header, rows, strong, deep)
        case Bars():
            return _bars(block)
        case Plane(says=says):
            return [plain(says)]
    return []


def _table(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], strong: Sequence[int] = (), deep: Sequence[int] = ()
) -> list[str]:
    made = [_pipes(map(plain, header)), _pipes(["---"] * len(header))]
    for number, row in enumerate(rows):
        cells = [plain(cell_text(cell)) for cell in row]
        if deep and deep[number]:
            cells[0] = "&nbsp;" * (3 * deep[number]) + cells[0]
        made.append(_pipes(f"**{cell}**" if number in strong and cell else cell for cell in cells))
    return made


def _pipes(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> list[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, text, fence]


def _bars(picture: Bars) -> list[str]:
    """A letter for each kind, as many of it as it is long; `|` is what is usable, dots are free."""
    longest = max([bar.value for bar in picture.bars] + ([picture.usable] if picture.usable is not None else []))
    name = max((width(bar.name) for bar in picture.bars), default=0)
    scale = WIDE / longest if longest else 0.0
    lines = [
        f"{left(bar.name, name)} {_drawn(bar, scale, picture.usable)} {bar.total.text}".strip() for bar in picture.bars
    ]
    kinds = {part.name: LETTERS[part.kind] for bar in picture.bars for part in bar.parts}
    legend = ", ".join(f"{letter} {name}" for name, letter in kinds.items())
    usable = [say("| usable: {size}", size=_read(picture.usable, picture.unit))] if picture.usable is not None else []
    return _code("\n".join([*lines, "", legend, *usable]))


def _drawn(bar: Bar, scale: float, usable: float | None) -> str:
    drawn, end = "", 0.0
    for part in bar.parts:
        end += part.value
        drawn += LETTERS[part.kind] * (round(end * scale) - len(drawn))
    if usable is None:
        return drawn
    line = round(usable * scale)
    return drawn.ljust(line, "·") + "|" if len(drawn) <= line else f"{drawn[:line]}|{drawn[line:]}"


def _read(value: float, unit: str) -> str:
    return f"{100 * value:.0f} %" if unit == "share" else human(value, unit)


def _appendix(opened: Mapping[str, Any]) -> Iterator[str]:
    if not opened:
        return
    yield from (f"# {say('Appendix: where each figure comes from')}", "")
    for path, term in opened.items():
        yield from (
            f"<details><summary>{plain(worded(term['name']))}: {plain(human(term['value'], term['unit']))}</summary>",
            "",
        )
        for node in nodes(term, path):
            exact = f" = {plain(node.exact)}" if node.exact else ""
            source = f" [{plain(node.source)}]" if node.source else ""
            how = "; ".join(f"`{code.replace('`', chr(39))}`" for code in node.codes)
            yield (
                f"{'  ' * node.depth}- {plain(worded(node.name))}: {plain(node.value)}{exact} "
                f"({plain(worded(node.basis))}) {how}{source}"
            )
        yield from ("", "</details>", "")


def _bibliography(opened: Mapping[str, Any]) -> Iterator[str]:
    found = citations(opened.values())
    if found:
        yield from (f"# {say('Sources')}", "")
        yield from (f"- **{plain(key)}**: {plain(text)}" for key, text in found.items())
