"""Reports through the templates of this folder. What a template writes is escaped for its form, HTML or Markdown."""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any
from zlib import crc32

from tonnage.kernel.errors import InvalidInput
from tonnage.language import current, say
from tonnage.render.palette import palette
from tonnage.render.report import blocks
from tonnage.render.report.blocks import Cell, Figure, Report, Table
from tonnage.render.report.drawing import draw_bars, draw_plane, letter_bars
from tonnage.render.report.sources import appendix, citations

FILLS = {part.name: part for part in (*palette().parts, *palette().times) if part.terms or part.letter}


if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NEEDS_JINJA = "reports need Jinja2: pip install 'tonnage[report]'."
TAGS = {"en": "en", "zh": "zh-CN"}
MARKS = {"fits": "✅", "tight": "⚠️", "no": "❌", "unknown": "❔"}
NUMBER = re.compile(r"[-−+]?\d[\d,.]*(?:\s|$)|[-−]$")
# What a notebook's page says of its theme: JupyterLab and Notebook, VS Code, Colab.
LIGHT_NOTEBOOKS = ('[data-jp-theme-light="true"]', ".vscode-light", '[theme="light"]')
DARK_NOTEBOOKS = ('[data-jp-theme-light="false"]', ".vscode-dark", '[theme="dark"]')
MAX_COMMAND_LENGTH = 400  # letters on the first page
ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]|#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})


def page(report: Report) -> str:
    """The report as one HTML file: it asks no network, runs no script, and prints its decision on one page of A4."""
    return _render_whole("report.html.jinja", report)


def markdown(report: Report) -> str:
    """The report for a pull request or a wiki: the same blocks, bars as text."""
    return _render_whole("report.md.jinja", report)


def notebook(report: Report) -> str:
    """The verdict, what it is made of, and the first of the details: a part of another page, with its own style."""
    return _render("part.html.jinja", report)


def short_markdown(report: Report) -> str:
    """The verdict, what it is made of, and the first of the details."""
    return _render("part.md.jinja", report)


def with_notebook_themes(css: str) -> "Markup":
    """The style of a report, in the light or dark of the notebook around it, where that says which, whatever the
    reader's system prefers.
    """
    from markupsafe import Markup

    light = [block for block in re.findall(r"(?m)^\.tonnage \{([^}]*)\}", css) if block.strip().startswith("--")]
    dark = re.findall(r"@media screen and \(prefers-color-scheme: ?dark\) \{\s*\.tonnage \{([^}]*)\}", css)
    themes = (("light", LIGHT_NOTEBOOKS, light), ("dark", DARK_NOTEBOOKS, dark))
    rules = "".join(
        f"{', '.join(f'.tonnage:is({around} *)' for around in arounds)} {{ color-scheme: {name}; {''.join(blocks)} }}\n"
        for name, arounds, blocks in themes
    )
    return Markup(f"{css}\n@media screen {{\n{rules}}}\n")


def _render_whole(template: str, report: Report) -> str:
    nodes = appendix(report.terms)
    return _render(
        template,
        report,
        appendix=nodes,
        linked=frozenset(node.path for opened in nodes for node in opened),
        citations=citations(report.terms.values()),
        command=shortened(report.command),
        language=TAGS[current()],
    )


def _render(template: str, report: Report, *, linked: frozenset[str] = frozenset(), **values: Any) -> str:
    """`linked`: paths of figures that lead to the appendix."""
    page = environment(template.split(".")[1]).get_template(template)
    prefix, mark = f"t{crc32(report.title.encode()):x}", MARKS[report.brief.kind]
    return page.render(report=report, prefix=prefix, mark=mark, linked=linked, **values).rstrip() + "\n"


@cache
def environment(form: str) -> "Environment":
    """The templates of a form, html or md. A name that a template does not know is an error."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise InvalidInput(NEEDS_JINJA) from None
    templates = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    if form == "md":
        templates.finalize = lambda value: value if isinstance(value, Markup) else Markup(plain(str(value)))
    templates.globals.update(say=say, fills=FILLS, themes=palette().colours)
    templates.filters.update(
        anchor=anchor,
        notebook_themes=with_notebook_themes,
        text=cell_text,
        numeric_columns=numeric_columns,
        drawn_bars=draw_bars,
        drawn_plane=draw_plane,
        letters=letter_bars,
        fence=fence,
    )
    for kind in ("Figure", "Paragraph", "Code", "Bullets", "Facts", "Table", "Bars", "Plane"):
        templates.tests[kind.lower()] = _is_a(getattr(blocks, kind))
    return templates


def _is_a(kind: type) -> Callable[[Any], bool]:
    return lambda block: isinstance(block, kind)


def plain(text: str) -> str:
    """Text that Markdown and HTML leave as it is, on one line."""
    return " ".join(text.split()).translate(ESCAPED)


def fence(text: str) -> str:
    """What opens and closes a block of code with this text in it."""
    marks = "```"
    while marks in text:
        marks += "`"
    return marks


def anchor(path: str) -> str:
    return "f-" + "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in path)


def shortened(command: str, most: int = MAX_COMMAND_LENGTH) -> str:
    return command if len(command) <= most else f"{command[:most]}…"


def cell_text(cell: Cell) -> str:
    return cell.text if isinstance(cell, Figure) else cell


def numeric_columns(table: Table) -> tuple[bool, ...]:
    """Whether each column has numbers alone, with their units: they end at one edge. 8xH100 is a name."""

    def is_numeric(at: int) -> bool:
        texts = [cell_text(row[at]) for row in table.rows]
        return at > 0 and any(texts) and all(not text or NUMBER.match(text) for text in texts)

    return tuple(map(is_numeric, range(len(table.header))))
