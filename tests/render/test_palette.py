"""One palette and one list of labels for the page, reports, plots and the bar of a terminal."""

import json
import re
from pathlib import Path

import pytest

import tonnage
from every_row import every_row
from tonnage.language import speaking
from tonnage.render.palette import THEMES, colour, label, memory_part, palette, term_label
from tonnage.render.plot.page import in_dark
from tonnage.render.plot.panel import colour as of_plot
from tonnage.render.plot.panel import marker

PACKAGE = Path(tonnage.__file__).parent
HEX = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
DRAWN = [
    path
    for folder in (PACKAGE / "render", PACKAGE / "web")
    for path in sorted(folder.rglob("*"))
    if path.suffix in {".py", ".js", ".css", ".jinja", ".html", ".svg"} and "vendor" not in path.parts
]
GROUNDS = ("bg", "panel", "field", "sunk")
TEXT = ("ink", "ink2", "ink3", "accent", "ok", "warn", "bad", "unknown")
WRITTEN_ON = (("on-accent", "accent"), ("on-fwd", "t-fwd"), ("on-bwd", "t-bwd"))
ICON = "icon.svg"  # a file of its own in a tab of the browser, which reads no style sheet


def luminance(colour_code: str) -> float:
    """As WCAG 2 defines it."""
    shares = [int(colour_code[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@every_row("path", DRAWN, ids=lambda path: path.relative_to(PACKAGE).as_posix(), at_least=100)
def test_no_other_file_has_a_colour_of_its_own(path):
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"href=\"#[^\"]*\"|url\(#[^)]*\)|>>>.*|'#a6bcd4'|ground: str = \"#ffffff\"", "", text)
    found = set(HEX.findall(text))
    assert found <= ({colour("accent")} if path.name == ICON else set())


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_read_on_every_ground(theme):
    pairs = [(text, ground) for text in TEXT for ground in GROUNDS]
    pairs += [
        (text, f"{name}-bg") for name in ("ok", "warn", "bad", "accent", "unknown") for text in ("ink", "ink2", name)
    ]
    pairs += list(WRITTEN_ON)
    low = {pair: contrast(colour(pair[0], theme), colour(pair[1], theme)) for pair in pairs}
    assert {pair: round(value, 2) for pair, value in low.items() if value < 4.5} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_parts_are_seen_on_the_ground(theme):
    colours = palette().colours[theme]
    drawn = [name for name in colours if name.startswith(("c-", "t-"))] + ["edge"]
    ratios = {(name, ground): contrast(colours[name], colours[ground]) for name in drawn for ground in ("bg", "panel")}
    assert len(drawn) > 12
    assert {pair: round(value, 2) for pair, value in ratios.items() if value < 3} == {}


def test_a_letter_is_read_on_its_colour_on_a_terminal():
    assert min(contrast("#000000", colour(part.colour, "dark")) for part in palette().parts) >= 4.5


def test_both_themes_have_the_same_colours_and_parts_name_them():
    light, dark = (palette().colours[theme] for theme in THEMES)
    assert list(light) == list(dark)
    assert {part.colour for part in (*palette().parts, *palette().times)} | set(palette().series) <= set(light)


def test_parts_are_told_apart_without_colour_where_colours_are_alike():
    patterns = [(part.colour, part.marks, part.size, part.turn) for part in (*palette().parts, *palette().times)]
    assert len(set(patterns)) == len(patterns)


def test_every_face_has_the_same_colour_and_label_for_a_part():
    from tonnage.render.report.page import FILLS
    from tonnage.web.palette import made_files

    module = made_files()["js/palette.js"].decode()
    values = {name: json.loads(value) for name, value in re.findall(r"export const (\w+) = (.*);", module)}
    css = made_files()["palette.css"].decode()
    for part in palette().parts:
        assert values["PATTERNS"][part.name]["colour"] == part.colour
        assert (
            f"--{part.colour}: {colour(part.colour)};" in css
            and f"--{part.colour}: {colour(part.colour, 'dark')};" in css
        )
        for term in part.terms:
            assert values["PART_OF"][term] == part.name == memory_part(term).name
            assert of_plot(term) == marker(term)["color"] == colour(part.colour)
            for language in ("en", "zh"):
                with speaking(language):
                    assert values["LABELS"][language][part.name] == label(part) == term_label(term)
        assert FILLS[part.name].colour == part.colour
        assert values["LABELS"]["zh"][part.name] != part.label


def test_a_figure_has_one_colour_on_dark_ground_for_each_on_light():
    light, dark = (palette().colours[theme] for theme in THEMES)
    mapped = in_dark()
    for name in light:
        if name.startswith(("c-", "t-")):
            assert mapped[light[name]] == dark[name]
