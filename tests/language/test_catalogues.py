"""Every catalogue is whole, has the same places as the English, and is compiled as it is written."""

import re
import tomllib
from pathlib import Path

import pytest

import tonnage
import write_locale
from tonnage.language import LANGUAGES, speaking, worded
from tonnage.language.catalogues import DOMAINS

SOURCES = write_locale.sources()


def _name(path):
    return f"{path.parents[1].name}/{path.stem}"


def _places(text: str) -> set[str]:
    return set(re.findall(r"\{[^{}]*\}", text))


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_catalogue_is_compiled_as_it_is_written(path):
    made = write_locale.compiled(write_locale.read(path))
    assert path.with_suffix(".mo").read_bytes() == made, "run `make locale`"


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_catalogue_is_laid_out_as_make_locale_does(path):
    assert path.read_bytes() == write_locale.laid_out(write_locale.read(path)), "run `make locale`"


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_no_text_lacks_its_translation(path):
    lacking = [each.id for each in write_locale.read(path) if each.id and (not each.string or each.fuzzy)]
    assert lacking == []


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_translation_has_the_places_of_its_text(path):
    other = {
        each.id: each.string
        for each in write_locale.read(path)
        if each.id and "{" in each.id and _places(each.id) != _places(each.string)
    }
    assert other == {}


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_text_before_the_first_place_or_after_the_last_keeps_its_blanks(path):
    """A text that begins or ends with a blank or a new line is a part of a line."""
    edges = re.compile(r"^\n*|\n*$")
    for each in write_locale.read(path):
        if each.id:
            assert edges.findall(each.id) == edges.findall(each.string), each.id


def test_every_catalogue_is_one_that_is_read():
    assert {path.parents[1].name for path in SOURCES} == set(LANGUAGES) - {"en"}
    assert {path.stem for path in SOURCES} <= set(DOMAINS)


def _reasons(part, inside=False):
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _reasons(value, inside or key == "why")
    elif isinstance(part, list):
        for value in part:
            yield from _reasons(value, inside)
    elif isinstance(part, str) and inside:
        yield part


def test_every_reason_of_a_figure_of_the_catalogue_is_said_in_chinese():
    files = sorted((Path(tonnage.__file__).parent / "catalogue").glob("*/*.toml"))
    reasons = {text for file in files for text in _reasons(tomllib.loads(file.read_text(encoding="utf-8")))}
    assert len(reasons) > 200
    with speaking("zh"):
        said = {text: re.sub("`[^`]*`", "", worded(text)) for text in reasons}
    english = re.compile(r"(?<![\w/.'-])[a-z]{2,} [a-z]{2,}(?![\w/-])|\b(and|or|of|the)\b")
    assert [text for text, made in said.items() if not re.search("[\u4e00-\u9fff]", made) or english.search(made)] == []
