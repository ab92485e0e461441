"""The pictures as one HTML file with plotly's JavaScript in it: works from a disk, asks no network, follows the
reader's light or dark.
"""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.language import current, say
from tonnage.render.plot.image import NEEDS_PLOTLY
from tonnage.render.plot.layout import layout
from tonnage.render.plot.panel import Panel

# No source but this file may be asked for anything: that it works offline is not left to trust.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
LANGUAGES = {"en": "en", "zh": "zh-Hans"}  # as HTML names them
STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --paper: #ffffff; --card: #f6f8fa; --line: #d1d9e0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --card: #151b23; --line: #3d444d; } }
body { margin: 0 auto; max-width: 1500px; padding: 1rem 1.25rem 2rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.3rem; margin: .2rem 0 1rem; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 0 0 .2rem; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 560px), 1fr)); gap: 1rem; }
figure { margin: 0; padding: .9rem 1rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card); min-width: 0; }
figure.wide { grid-column: 1 / -1; }
figcaption { color: var(--soft); font-size: .86rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: .8rem; margin: .4rem 0 0; }
dt { color: var(--soft); font-size: .86rem; } dd { margin: 0; font-size: 1.35rem; font-weight: 600; }
details { font-size: .86rem; overflow-x: auto; } summary { cursor: pointer; color: var(--soft); }
table { border-collapse: collapse; margin-top: .4rem; } th, td { text-align: right; padding: .15rem .7rem .15rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } .drawing { width: 100%; }
"""
DRAW = """
const dark = matchMedia('(prefers-color-scheme: dark)');
function template() {
  const [ink, grid] = dark.matches ? ['#e6edf3', '#3d444d'] : ['#1f2328', '#d1d9e0'];
  const axis = {gridcolor: grid, linecolor: grid, zerolinecolor: grid};
  return {layout: {font: {color: ink}, xaxis: axis, yaxis: axis, modebar: {bgcolor: 'rgba(0,0,0,0)', color: '#8a8a8a', activecolor: ink}}};
}
function draw() {
  for (const [name, {data, layout}] of Object.entries(FIGURES)) {
    layout.template = template();
    Plotly.react(name, data, layout, {responsive: true, displaylogo: false, displayModeBar: matchMedia('(hover: hover)').matches ? 'hover' : false, modeBarButtonsToRemove: ['select2d', 'lasso2d']});
  }
}
dark.addEventListener('change', draw);
draw();
"""


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
        f'content="{POLICY}">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n'
        f"<h1>{escape(title)}</h1>\n<main>\n{body}\n</main>\n<script>{get_plotlyjs()}</script>\n"
        f"<script>const FIGURES = {_json(figures)};{DRAW}</script>\n</body>\n</html>\n"
    )


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
    return f"<details><summary>{say('as a table')}</summary><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"


def _json(figures: dict[str, Any]) -> str:
    """JSON that ends no script, whatever a model is called."""
    return json.dumps(figures, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
