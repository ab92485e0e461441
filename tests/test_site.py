"""The site of the documentation is built without a warning, its links lead somewhere, it asks no other host, and what
its pages show comes from the code.
"""

import inspect
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import build_site
import tonnage
from tonnage.question.option import names_in
from tonnage.question.verbs import FORMS, form_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CHROMIUM = Path("/usr/bin/chromium")
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
NEVER_FETCHED = {"canonical", "prev", "next", "alternate", "edit"}  # links that a browser does not follow by itself


class Page(HTMLParser):
    """Where a page of the site leads to, what it fetches, and what others may lead to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in FETCHED and found.get(FETCHED[tag]) and found.get("rel") not in NEVER_FETCHED:
            self.fetched.append(found[FETCHED[tag]])


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    pytest.importorskip("zensical")
    return build_site.build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(html):
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(html.rglob("*.html"))}


def test_links_and_anchors_of_the_site_lead_somewhere(html, pages):
    lost = []
    for path, page in pages.items():
        if path.name == "404.html":  # which is served from any folder
            continue
        for link in (*page.links, *page.fetched):
            target, anchor = urldefrag(unquote(link))
            if "://" in target or target.startswith(("mailto:", "data:")):
                continue
            there = (path.parent / target).resolve() if target else path
            there = there / "index.html" if there.is_dir() else there
            if not there.exists() or (anchor and there in pages and anchor not in pages[there].anchors):
                lost.append(f"{path.relative_to(html)}: {link}")
    assert not lost
    assert len(pages) > 80


def test_a_lost_anchor_would_be_found(tmp_path):
    page = Page('<h2 id="here"></h2><a href="#there">x</a>')
    assert page.anchors == {"here"} and page.links == ["#there"]


def test_the_site_asks_no_other_host(html, pages):
    for path, page in pages.items():
        assert not [link for link in page.fetched if "://" in link or link.startswith("//")], path
    for sheet in html.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text(encoding="utf-8")), sheet


def test_every_page_of_the_docs_is_in_the_navigation():
    settings = (DOCS / "zensical.toml").read_text(encoding="utf-8")
    named = set(re.findall(r'"([\w/]+\.md)"', settings))
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    decisions = {name for name in there if re.match(r"decisions/\d", name)}  # the table of decisions leads to them
    made = {"python.md", *(f"options/{verb}.md" for verb in build_site.VERBS_WITH_OPTIONS)}
    assert named == there - decisions | made


def test_where_a_page_asks_for_output_it_is_shown(html):
    first = (html / "index.html").read_text(encoding="utf-8")
    verdict = build_site.output("tonnage train llama-3.1-8b --on 8xH100-SXM-80GB --sequence-length 16k")[0]
    assert verdict in unescape(re.sub(r"<[^>]+>", "", first))
    for path in DOCS.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert len(build_site.SHOWN.findall(text)) == len(re.findall(r"^<!-- output\b", text, flags=re.M)), path


def test_output_is_cut_where_the_page_says():
    block = "```console\n$ tonnage rules A6\n```\n<!-- output: 1 -->"
    lines = build_site.output("tonnage rules A6")
    assert build_site.with_output(block).splitlines() == ["```console", "$ tonnage rules A6", lines[0], "...", "```"]


@pytest.mark.parametrize("verb", build_site.VERBS_WITH_OPTIONS)
def test_the_page_of_options_has_every_option_of_the_schema(verb):
    page = build_site.options_page(verb)
    for kind in FORMS[verb]:
        for group in form_of(verb, kind).groups:
            for option in group.options:
                assert option.alone or f"| `{option.flag}`" in page, option.name
                for name in names_in(option.choices):
                    assert f"`{name}`" in page or option.alone


def test_the_page_of_python_has_every_public_name(html):
    page = unescape(re.sub(r"<[^>]+>", "", (html / "python.html").read_text(encoding="utf-8")))
    for name in tonnage.__all__:
        assert f"tonnage.{name}" in page
    assert inspect.getdoc(tonnage.serve).partition("\n")[0] in page


def test_the_page_of_rules_has_every_rule_and_every_erratum(html):
    page = (html / "explanation" / "rules.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr>\s*<td>([A-E]\w+)</td>", page)
    errata = re.findall(r'href="#([a-e]\w+)">yes<', page)
    assert len(rows) == len(set(rows)) == 49
    assert errata and all(f'id="{name}"' in page for name in errata)


def test_search_finds_a_page_from_a_folder_without_a_server(html):
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("scripts/debian_packages.sh installs Chromium")
    with playwright.sync_playwright() as drivers:
        browser = drivers.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((html / "index.html").as_uri())
        page.keyboard.press("/")
        page.locator("input:visible").first.fill("GRPO")
        page.get_by_text("Plan an RL run").locator("visible=true").first.wait_for()
        assert asked and not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
        browser.close()
