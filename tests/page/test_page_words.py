"""Every string of the page has its Chinese."""

import re
from pathlib import Path

import polib

import tonnage
from every_row import every_row

PACKAGE = Path(tonnage.__file__).parent
PAGE = PACKAGE / "web" / "page"
CATALOGUES = [PACKAGE / "language" / "zh" / "LC_MESSAGES" / f"{name}.po" for name in ("page", "page_more")]
CALL = re.compile(r"""(?<![\w.$])t\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
FRAME = re.compile(r'data-t>([^<]+)<|aria-label="([^"]+)" data-tlabel')
FILES = sorted(path for path in PAGE.rglob("*.js") if "vendor" not in path.parts)


def strings():
    """(file, English) of each call of t() and each text of the frame."""
    for path in FILES:
        for found in CALL.finditer(path.read_text()):
            yield path.name, found[1] if found[1] is not None else found[2]
    for found in FRAME.finditer((PAGE / "index.html").read_text()):
        yield "index.html", found[1] or found[2]


def known():
    return {
        entry.msgid: entry.msgstr
        for path in CATALOGUES
        if path.is_file()
        for entry in polib.pofile(str(path))
        if not entry.obsolete
    }


def test_every_string_of_the_page_has_its_chinese():
    chinese = known()
    found = list(strings())
    assert len(found) > 150
    assert sorted({(file, text) for file, text in found if not chinese.get(text)}) == []


def test_no_chinese_is_of_a_string_that_the_page_no_longer_says():
    said = {text for _, text in strings()}
    own = {entry.msgid for entry in polib.pofile(str(CATALOGUES[0]))}
    assert sorted(own - said) == []


def test_a_translation_has_the_places_of_its_string():
    for english, chinese in known().items():
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", chinese)), english


@every_row("path", FILES, ids=lambda path: path.relative_to(PAGE).as_posix(), at_least=50)
def test_t_is_called_with_a_string_and_nothing_is_written_as_markup(path):
    text = path.read_text()
    if path.name not in ("words.js", "frame.js"):
        assert re.findall(r"(?<![\w.$])t\(\s*[^\"'\s][^)]*\)", text) == []
    assert not re.search(
        r"innerHTML|outerHTML|InnerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    assert not re.search(r"\bwindow\.\w+\s*=[^=]", text), "a global"
    assert len(text.splitlines()) <= 400


def test_the_page_names_no_other_host():
    for path in [*PAGE.rglob("*.js"), *PAGE.glob("*.css"), *PAGE.glob("*.html")]:
        addresses = re.findall(r"https?://[\w./-]+", path.read_text())
        assert [each for each in addresses if "www.w3.org" not in each] == [], path.name
