"""The pictures as one HTML file with plotly's JavaScript in it: works from a disk, asks no network, follows the
reader's light or dark.
"""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.language import current, say
from tonnage.render.palette import THEMES, declarations, palette
from tonnage.render.plot.image import NEEDS_PLOTLY
from tonnage.render.plot.layout import layout
from tonnage.render.plot.panel import Panel

# No source but this file may be asked for anything: that it works offline is not left to trust.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
LANGUAGES = {"en": "en", "zh": "zh-Hans"}  # as HTML names them
STYLE = "page.css"  # files beside this module
DRAW = "page.js"
GROUND = ("bg", "panel", "line", "ink", "ink2", "ink3")  # colours of the page around the figures


def page(title: str, parts: Sequence[Panel]) -> str:
    """The whole file."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InvalidInput(NEEDS_PLOTLY) from None
    figures = {part.name: {"data": part.traces, "layout": layout([part])} for part in parts if part.traces}
    body = "\n".join(_figure(part) for part in parts)
    return (
        f'<!DOCTYPE html>\n<html lang="{LANGUAGES[current()]}">\n<head>\n<meta charset="utf-8">\n<meta '
        'name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        f'content="{POLICY}">\n<title>{escape(title)}</title>\n<style>\n{_colours()}{_text(STYLE)}</style>\n</head>\n'
        f"<body>\n<h1>{escape(title)}</h1>\n<main>\n{body}\n</main>\n<script>{get_plotlyjs()}</script>\n"
        f"<script>const FIGURES = {_json(figures)};\nconst DARK = {_json(in_dark())};\n{_text(DRAW)}</script>\n"
        "</body>\n</html>\n"
    )


def in_dark() -> dict[str, str]:
    """The colours of figures on light ground -> on dark ground."""
    light, dark = (palette().colours[theme] for theme in THEMES)
    drawn = [name for name in light if name.startswith(("c-", "t-")) or name in ("bad", "ok", "ink2")]
    return {light[name]: dark[name] for name in drawn}


def _colours() -> str:
    light, dark = (declarations(theme, GROUND) for theme in THEMES)
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _figure(part: Panel) -> str:
    wide = ' class="wide"' if part.wide else ""
    head = f'<figure{wide} aria-labelledby="title-{part.name}">\n<h2 id="title-{part.name}">{escape(part.title)}</h2>'
    if part.tiles:
        tiles = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}</dd></div>" for name, figure in part.tiles)
        return f"{head}\n<dl>{tiles}</dl>\n</figure>"
    drawing = (
        f'<div id="{part.name}" class="drawing" role="img" aria-label="{escape(part.says)}" '
        f'style="height:{part.height}px"></div>'
    )
    return f"{head}\n<figcaption>{escape(part.says)}</figcaption>\n{drawing}\n{_table(part)}\n</figure>"


def _table(part: Panel) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in part.header)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in part.rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<details><summary>{say('as a table')}</summary>{table}</details>"


def _text(name: str) -> str:
    return (files("tonnage.render.plot") / name).read_text(encoding="utf-8")


def _json(figures: dict[str, Any]) -> str:
    """JSON that ends no script, whatever a model is called."""
    return json.dumps(figures, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
