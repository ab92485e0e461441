"""The pictures of a terminal in the readmes show what the command prints now."""

import re
from pathlib import Path

import pytest

pictures = pytest.importorskip("terminal_pictures")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_shows_what_the_command_prints(name):
    svg = (pictures.IMAGES / name).read_text(encoding="utf-8")
    now = pictures.picture(pictures.PICTURES[name])
    assert pictures.words_in(svg) == pictures.words_in(now), "run `make docs`"
    verdict = re.sub(r"\x1b\[[\d;]*m", "", pictures.on_terminal(pictures.COMMAND, pictures.PICTURES[name])[0])
    assert re.sub(r"\s", "", verdict)[:30] in pictures.words_in(svg)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_small_and_fetches_nothing(name):
    svg = (pictures.IMAGES / name).read_text(encoding="utf-8")
    assert len(svg) < 60_000
    assert not re.search(r"url\((?!#)|@import|href=|<image", svg)


def test_the_readmes_show_the_pictures_and_the_command():
    for readme, name in (("README.md", "terminal.svg"), ("README.zh.md", "terminal_zh.svg")):
        text = (ROOT / readme).read_text(encoding="utf-8")
        assert f"(docs/images/{name})" in text and f"$ {pictures.COMMAND} " in text


def test_a_chinese_character_takes_two_columns():
    (text,) = pictures.TEXT.finditer('<text class="terminal-r1" x="0" textLength="24.4" y="1">放下</text>')
    assert 'textLength="48.8"' in pictures._widened(text)
