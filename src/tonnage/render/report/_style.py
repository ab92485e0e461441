"""The look of a report: CSS and the patterns of bars. Light and dark on a screen, light on paper; colour never
stands alone.
"""

# kind: (colour on light, colour on dark, hatching, its turn in degrees)
_BAR, _DOTS = '<path d="M0 0V20" stroke-width="3"/>', '<circle cx="2.5" cy="2.5" r="1.1"/>'
_LINES, _GRID = '<path d="M0 .5H12" stroke-width="1"/>', '<path d="M0 0H6M0 0V6" stroke-width="2"/>'
FILLS = {
    "weights": ("#1d4f7c", "#5b93cc", "", 8, 0),
    "gradients": ("#3d8bc0", "#8cc7ec", _BAR, 7, 45),
    "optimizer": ("#85508f", "#c08bca", _DOTS, 6, 0),
    "activations": ("#b9641c", "#e39450", _LINES, 6, 0),
    "temporary": ("#8f7a17", "#cdb44c", _GRID, 5, 45),
    "comm": ("#b03a5b", "#ec8ba6", _BAR, 5, 0),
    "kv": ("#23807a", "#55b8ae", _BAR, 7, -45),
    "overhead": ("#66727a", "#97a4ab", "", 8, 0),
    "forward": ("#7896ad", "#496a83", "", 8, 0),
    "backward": ("#2d4c64", "#9cc0da", _LINES, 6, 0),
    "exchange": ("#23807a", "#55b8ae", _BAR, 7, -45),
    "update": ("#85508f", "#c08bca", _DOTS, 6, 0),
    "rest": ("#66727a", "#97a4ab", _BAR, 7, 45),
}

LIGHT = "--bg:#fff;--ink:#13191c;--ink2:#465258;--ink3:#586469;--line:#d6dcdf;--edge:#7d898f;--sunk:#f1f3f4;--accent:#0a5793;--ok:#17663a;--warn:#855300;--bad:#ad231b;--hatch:#fff;"
DARK = "--bg:#0f1315;--ink:#e7ebed;--ink2:#b0bbc1;--ink3:#95a2a9;--line:#2b3439;--edge:#74828a;--sunk:#161b1e;--accent:#74b8ee;--ok:#74cd98;--warn:#e6b150;--bad:#ff8f84;--hatch:#0f1315;"

STYLE = """
.tonnage{color-scheme:light dark;background:var(--bg);color:var(--ink);font:14px/1.43 system-ui,"Segoe UI","Noto Sans","PingFang SC","Microsoft YaHei","Noto Sans CJK SC",sans-serif;font-variant-numeric:tabular-nums;text-align:left}
.tonnage *{box-sizing:border-box}
.tonnage h1{font-size:20px;line-height:1.3;margin:4px 0 12px;font-weight:600;overflow-wrap:anywhere}
.tonnage h2{font-size:14px;font-weight:600;margin:16px 0 4px;break-after:avoid;padding:0;border:0}
.tonnage p{margin:4px 0}.tonnage ul{margin:4px 0;padding-left:18px}.tonnage li{margin:1px 0;overflow-wrap:anywhere}
.tonnage .asks{color:var(--ink2);font-size:15px}
.tonnage .verdict{display:flex;gap:10px;align-items:flex-start}.tonnage .verdict svg{flex:none;width:22px;height:22px;margin-top:6px}
.tonnage .fits{color:var(--ok)}.tonnage .tight{color:var(--warn)}.tonnage .no{color:var(--bad)}.tonnage .unknown{color:var(--ink2)}
.tonnage .note,.tonnage .made,.tonnage td.note{color:var(--ink3);font-size:12px}
.tonnage pre,.tonnage code{font:12px/1.4 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
.tonnage pre{background:var(--sunk);border-left:3px solid var(--edge);padding:6px 10px;margin:6px 0;white-space:pre-wrap;color:inherit}
.tonnage table{border-collapse:collapse;width:100%;margin:4px 0 8px;font-size:13px;border:0}
.tonnage th{font-weight:400;color:var(--ink2);text-align:left;border:0;border-bottom:1px solid var(--edge);padding:2px 16px 2px 0;vertical-align:bottom;background:none}
.tonnage td{border:0;border-bottom:1px solid var(--line);padding:2px 16px 2px 0;vertical-align:top;overflow-wrap:break-word;background:none;text-align:left}.tonnage td.r{text-align:right}
.tonnage tr{break-inside:avoid;background:none}.tonnage .r{text-align:right}.tonnage td.r,.tonnage td.name{white-space:nowrap}.tonnage tr.strong td{font-weight:600}
.tonnage td.v{white-space:nowrap}.tonnage td.note{overflow-wrap:anywhere;min-width:9em}.tonnage .wide{overflow-x:auto}.tonnage .many table{font-size:12px}.tonnage .many td,.tonnage .many th{padding-right:10px}
.tonnage a{color:inherit;text-decoration:underline dotted var(--edge) 1px;text-underline-offset:3px}.tonnage a:hover{color:var(--accent)}
.tonnage figure{margin:6px 0;break-inside:avoid}.tonnage figure svg{width:100%;height:auto;display:block;max-width:760px;font-family:inherit}
.tonnage svg text{font-size:12px;fill:var(--ink)}.tonnage svg .soft{fill:var(--ink2)}
.tonnage .legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:12px;color:var(--ink2)}.tonnage .legend svg{width:16px;height:10px;display:inline-block;margin-right:5px;vertical-align:-1px}
.tonnage details{border-top:1px solid var(--line);padding:4px 0}.tonnage summary{cursor:pointer}
.tonnage .node{margin:6px 0 6px calc(var(--deep)*14px);padding-left:8px;border-left:1px solid var(--line);break-inside:avoid;overflow-wrap:anywhere}
.tonnage .node:target{border-left:3px solid var(--accent)}.tonnage .node code{display:block;color:var(--ink2)}
"""
PAGE = """
body{margin:0}main.tonnage{max-width:980px;margin:0 auto;padding:20px 24px 40px}
.brief{border-bottom:2px solid var(--edge);padding-bottom:16px;margin-bottom:20px}
@media screen and (max-width:600px){main.tonnage{padding:12px 14px 32px}.tonnage td.name,.tonnage td.v{white-space:normal}}
@page{size:A4;margin:12mm 14mm}
@media print{.tonnage,main.tonnage{LIGHT color-scheme:light;font-size:12.5px;max-width:none;padding:0;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.brief{break-after:page;border:0;margin:0;padding:0;line-height:1.26}.brief h1{font-size:15.5px;margin:1px 0 3px}.brief h2{margin:6px 0 1px;font-size:11.5px}.brief table{font-size:10.5px;margin:1px 0}.brief td,.brief th{padding:1px 8px 1px 0}
.brief figure{margin:2px 0}.brief figure svg{max-width:620px}.brief .legend{font-size:10px}
.brief li,.brief p{font-size:10.5px}.brief p.asks{font-size:12px}.brief .note,.brief td.note,.brief .made{font-size:9.5px}.brief pre{font-size:9.5px;padding:2px 8px;margin:2px 0;line-height:1.25}.tonnage a{text-decoration:none}.tonnage .wide{overflow:visible}.tonnage .many table{font-size:9px}.tonnage .many td,.tonnage .many th{padding-right:6px}}
"""


def style(*, whole: bool) -> str:
    """Of a file of its own, or of a part of another page (a notebook), which says by itself whether it is dark."""
    dark = f"@media screen and (prefers-color-scheme:dark){{.tonnage{{{DARK}{_fills(1)}}}}}"
    classes = "".join(f".tonnage .f-{kind}{{fill:var(--c-{kind})}}" for kind in FILLS)
    look = f".tonnage{{{LIGHT}{_fills(0)}}}{classes}{STYLE}{dark}"
    return f"{look}{PAGE.replace('LIGHT', LIGHT + _fills(0))}" if whole else look


def patterns(prefix: str) -> str:
    """Once in each file: what bars are filled with. Without the style they are coloured as on paper."""
    made = []
    for kind, (light, _, drawn, size, turn) in FILLS.items():
        made.append(
            f'<pattern id="{prefix}-{kind}" width="{size}" height="{size}" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate({turn})">'
            f'<rect width="{size}" height="{size}" fill="{light}" class="f-{kind}"/><g '
            f'stroke="{"none" if drawn == _DOTS else "#fff"}" '
            f'stroke-opacity=".55" fill="{"#fff" if drawn == _DOTS else "none"}" '
            f'fill-opacity=".55">{drawn}</g></pattern>'
        )
    made.append(
        f'<pattern id="{prefix}-over" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="7" height="7" fill="#fff"/><path d="M0 0V7" stroke="#ad231b" stroke-width="4"/></pattern>'
    )
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>{"".join(made)}</defs></svg>'


def _fills(dark: int) -> str:
    return "".join(f"--c-{kind}:{fill[dark]};" for kind, fill in FILLS.items())
