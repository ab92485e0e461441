"""The page without a server in Debian's Chromium: the same documents as the command line's, number for number, and no
request elsewhere.

Of the long tier: it needs Pyodide and msgspec for browsers, which npm and PyPI have. TONNAGE_PYODIDE names a folder
that holds both files (docs/static_page.md).
"""

import json
import math
import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from questions_of_faces import PASTED, QUESTIONS, name_of
from tonnage.kernel.encoding import encode

pytest.importorskip("litestar", reason="needs tonnage[web]")

from tonnage.cli import main
from tonnage.verbs.ask import ask
from tonnage.web.static.browser import WITHIN
from tonnage.web.static.parts import PACKED, WHEEL

FOLDER = os.environ.get("TONNAGE_PYODIDE")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not FOLDER, reason="TONNAGE_PYODIDE names no folder with Pyodide and msgspec for browsers"),
]
CHROMIUM = shutil.which("chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
SECONDS = 120_000  # ms; an idle machine takes some ten seconds
ASK = """async ([verb, question]) => {
  const api = await import(new URL("js/api.js", document.baseURI));
  try { return await api.ask(verb, question); } catch (error) { return { kind: error.kind, message: error.message }; }
}"""


LARGEST = 2**53  # whole numbers above it are floats in JavaScript, on every page


def differences(one, other, where="document"):
    """Where two documents differ. Floats are equal to 12 digits: since Python 3.12 `sum` adds floats with their
    remainders, and a browser has Python 3.14.
    """
    if {type(one), type(other)} <= {int, float} and (
        type(one) is not type(other) or type(one) is float or abs(one) > LARGEST
    ):
        return [] if math.isclose(one, other, rel_tol=1e-12, abs_tol=0) else [f"{where}: {one!r} and {other!r}"]
    if isinstance(one, dict) and isinstance(other, dict) and [*one] == [*other]:
        return [line for name in one for line in differences(one[name], other[name], f"{where}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            line
            for at, pair in enumerate(zip(one, other, strict=True))
            for line in differences(*pair, f"{where}[{at}]")
        ]
    return [] if one == other else [f"{where}: {one!r} and {other!r}"[:200]]


def test_differences_are_found():
    whole = {"a": [1, 0.1, "x", None], "b": {"c": 2.5}}
    assert differences(whole, json.loads(json.dumps(whole))) == [] == differences(0.3, 0.1 + 0.2)
    for other in (
        {"a": whole["a"]},
        {**whole, "b": {"c": 2.5000001}},
        {**whole, "a": [1, 0.1, "y", None]},
        {**whole, "a": [1, 0.1]},
    ):
        assert differences(whole, other)


# What the line says while Python is loaded.
SHARES = """window.shares = [];
document.addEventListener("DOMContentLoaded", () => new MutationObserver(() => shares.push(document.getElementById("python").getAttribute("aria-valuenow")))
  .observe(document.getElementById("python"), { attributes: true }));"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A static host, the page in a folder below its root."""
    root = tmp_path_factory.mktemp("host")
    files = [Path(FOLDER) / PACKED, Path(FOLDER) / WHEEL]
    assert (
        main(
            ["web", "--static", str(root / "below" / "the root"), "--pyodide", str(files[0]), "--wheel", str(files[1])]
        )
        == 0
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/below/the%20root/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Debian's chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield made
        made.close()


@pytest.fixture(scope="module")
def page(browser, address):
    """The page after its Python has come; `page.asked` are the addresses of its requests."""
    made = browser.new_page()
    made.asked, made.said = [], []
    made.on("request", lambda request: made.asked.append(request.url))
    made.on("console", lambda message: made.said.append(f"{message.type}: {message.text}"))
    made.on("pageerror", lambda error: made.said.append(f"error: {error}"))
    made.add_init_script(SHARES)
    made.goto(address)
    made.wait_for_selector("#python", state="hidden", timeout=SECONDS)
    return made


@pytest.mark.parametrize("asked", [*QUESTIONS, PASTED], ids=name_of)
def test_the_browser_gives_the_document_of_the_command_line(page, asked):
    found = page.evaluate(ASK, [asked.verb, asked.question])
    if asked.needs:
        assert found["kind"] == "NotInBrowser" and "tonnage web" in found["message"]
        return
    made = ask(asked.verb, asked.question, WITHIN)
    assert found["status"] == made.status
    assert differences(found["document"], json.loads(encode(made.document))) == []


def test_how_far_it_is_was_shown_while_python_was_loaded(page):
    shares = [int(share) for share in page.evaluate("shares") if share]
    assert len(set(shares)) > 10 and shares == sorted(shares) and shares[-1] == 100
    assert page.locator("#python").get_attribute("role") == "progressbar"


def test_what_is_refused_is_refused_in_the_words_of_the_command_line(page):
    found = page.evaluate(ASK, ["train", {"model": "llama-3.1-8c", "on": "h100"}])
    assert found["kind"] == "UnknownName" and "Did you mean 'llama-3.1-8b'" in found["message"]


def test_a_reader_opens_the_page_and_sees_a_verdict(page, address):
    page.goto(address)
    page.locator(".starts .example").nth(1).click()
    page.wait_for_selector("body[data-state=answered] section.verdict h1", timeout=SECONDS)
    assert page.locator("button.n").count() > 10
    link = page.url
    page.goto("about:blank")
    page.goto(link)  # shared: the question is in the address
    page.wait_for_selector("body[data-state=answered] #v-line", timeout=SECONDS)


def test_an_older_question_is_dropped_for_a_newer_one(page):
    found = page.evaluate(
        """async () => {
      const api = await import(new URL("js/api.js", document.baseURI));
      const stop = new AbortController();
      const all = [api.ask("rules", {}), api.ask("train", { model: "gpt2", on: "t4" }, stop.signal), api.ask("explain", { name: "k" })];
      stop.abort();
      return (await Promise.allSettled(all)).map((each) => each.reason?.name ?? each.value.status);
    }"""
    )
    assert found == [0, "AbortError", 0]


def test_no_request_leaves_for_another_host_and_nothing_complains(page, address):
    assert len(page.asked) > 30
    assert [url for url in page.asked if not url.startswith((address, "about:", "blob:", "data:"))] == []
    assert [line for line in page.said if line.startswith("error")] == []
