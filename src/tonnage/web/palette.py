"""Files of the page that are made from the palette of all pictures: its colours as custom properties, and its patterns
and labels as a module.
"""

from functools import cache

from tonnage.kernel.encoding import encode
from tonnage.language import LANGUAGES, speaking
from tonnage.render.palette import THEMES, Part, declarations, label, palette

MADE = "Made from render/palette/palette.toml."
HATCH = "--hatch-a: .55;"  # how strongly the marks of a pattern are drawn


@cache
def made_files() -> dict[str, bytes]:
    """Name of each of these files below the page's folder -> its content."""
    return {"palette.css": _css().encode(), "js/palette.js": _module().encode()}


def _css() -> str:
    light, dark = (f"color-scheme: {theme}; {declarations(theme)} {HATCH}" for theme in THEMES)
    return (
        f'/* {MADE} */\n:root, [data-theme="light"] {{ {light} }}\n[data-theme="dark"] {{ {dark} }}\n'
        f'@media print {{ [data-theme="dark"] {{ {light} }} }}\n'
    )


def _module() -> str:
    parts, times = palette().parts, palette().times
    values = {
        "PATTERNS": {part.name: _pattern(part) for part in (*parts, *times)},
        "PART_OF": {term: part.name for part in parts for term in part.terms},
        "LABELS": {language: _labels(language) for language in LANGUAGES},
    }
    lines = [f"export const {name} = {encode(value).decode().strip()};" for name, value in values.items()]
    return "\n".join([f"/* {MADE} */", *lines, ""])


def _pattern(part: Part) -> dict[str, object]:
    return {"colour": part.colour, "marks": part.marks, "size": part.size, "turn": part.turn}


def _labels(language: str) -> dict[str, str]:
    """Name of each part of memory -> what it is called in a language."""
    with speaking(language):
        return {part.name: label(part) for part in palette().parts}
