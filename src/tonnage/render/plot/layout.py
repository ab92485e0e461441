"""Where panels lie in one drawing of plotly: one a drawing on a page, all below each other in an image."""

from collections.abc import Sequence
from html import escape
from typing import Any

from tonnage.render.palette import colour
from tonnage.render.plot.panel import Panel, lines

# The last ones are there for Chinese: those of macOS, Windows and Linux.
FONT = (
    "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', "
    "'WenQuanYi Micro Hei', sans-serif"
)
PLAIN: dict[str, Any] = {
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": FONT, "size": 13},
    "bargap": 0.15,
    "hoverlabel": {"align": "left"},
    "uniformtext": {"mode": "hide", "minsize": 8},
}
MARGIN = {"l": 64, "r": 20, "t": 30, "b": 50}
LEGEND = {"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "top", "traceorder": "normal"}


def layout(parts: Sequence[Panel]) -> dict[str, Any]:
    """The layout of one panel on a page, its legend below the axis."""
    (part,) = parts
    below = -72 / max(part.height - MARGIN["t"] - 125, 1)
    return {
        **PLAIN,
        "barmode": part.bars,
        "margin": {**MARGIN, "b": 125},
        "xaxis": {"automargin": True, **_titled(part.x)},
        "yaxis": {"automargin": True, **part.y},
        "shapes": list(part.shapes),
        "annotations": list(part.notes),
        "showlegend": True,
        "legend": {**LEGEND, "y": below},
    }


def _titled(axis: dict[str, Any]) -> dict[str, Any]:
    """The axis with its title close by, so that the legend has room below it."""
    return {**axis, "title": {**axis["title"], "standoff": 6}} if "title" in axis else axis


# ---- all panels below each other ----

WIDTH, HEAD, BETWEEN, BELOW, ACROSS = 1400, 70, 85, 95, 6
INK, GRID, PAPER = colour("ink"), colour("line"), colour("field")


def column(title: str, parts: Sequence[Panel]) -> dict[str, Any]:
    """A figure of all panels, on white: each with axes and a legend of its own."""
    height = HEAD + sum(part.height + BETWEEN for part in parts)
    inner = height - HEAD
    drawn: dict[str, Any] = {
        "data": [],
        "layout": {
            **PLAIN,
            "paper_bgcolor": PAPER,
            "font": {**PLAIN["font"], "color": INK},
            "width": WIDTH,
            "height": height,
            "barmode": "stack",
            "margin": {"l": 210, "r": 60, "t": HEAD, "b": 0},
            "title": {"text": escape(title), "x": 0.02, "xanchor": "left", "font": {"size": 18}},
            "shapes": [],
            "annotations": [],
        },
    }
    top = 1.0
    for index, part in enumerate(parts, 1):
        low = top - (part.height + BETWEEN) / inner
        _place(drawn, part, str(index), (low + BELOW / inner, top - BETWEEN / inner), inner)
        top = low
    return drawn


def _place(drawn: dict[str, Any], part: Panel, index: str, domain: tuple[float, float], inner: int) -> None:
    """One panel between two heights, both as shares of the drawing."""
    layout, (low, high) = drawn["layout"], domain
    layout["annotations"].append(_text(f"<b>{escape(part.title)}</b>", 0, high + 52 / inner, 16, "left"))
    if part.tiles:
        layout["annotations"] += _tiles(part, high)
        return
    axis = {"gridcolor": GRID, "linecolor": GRID, "zerolinecolor": GRID}
    layout[f"xaxis{index}"] = {**axis, **_titled(part.x), "anchor": f"y{index}"}
    layout[f"yaxis{index}"] = {**axis, **part.y, "anchor": f"x{index}", "domain": [max(low, 0), high]}
    layout[f"legend{index}"] = {**LEGEND, "y": low - 56 / inner}
    for trace in part.traces:
        placed = {**trace, "xaxis": f"x{index}", "yaxis": f"y{index}", "legend": f"legend{index}"}
        if part.bars == "overlay" and trace["type"] == "bar":
            placed["offset"] = -trace["width"] / 2  # one drawing has one barmode; bars with an offset are not stacked
        drawn["data"].append(placed)
    for name, more in (("shapes", part.shapes), ("annotations", part.notes)):
        for item in more:
            layout[name].append(_moved(item, index))


def _moved(item: dict[str, Any], index: str) -> dict[str, Any]:
    """A shape or a note on the axes of its panel; what spans the paper spans the panel."""
    return {
        **item,
        **{
            f"{way}ref": f"{way}{index} domain" if item.get(f"{way}ref") == "paper" else f"{way}{index}" for way in "xy"
        },
    }


def _tiles(part: Panel, high: float) -> list[dict[str, Any]]:
    """Figures with their names below, some beside each other."""
    texts = []
    for place, (name, figure) in enumerate(part.tiles):
        x, down = place % ACROSS / ACROSS, 75 * (place // ACROSS)
        texts.append({**_text(f"<b>{escape(figure)}</b>", x, high, 18, "left"), "yshift": -down})
        texts.append({**_text(lines(name, 24), x, high, 12, "left"), "yshift": -down - 27})
    return texts


def _text(text: str, x: float, y: float, size: int, anchor: str) -> dict[str, Any]:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": anchor,
        "yanchor": "top",
        "align": "left",
        "showarrow": False,
        "font": {"size": size},
    }
