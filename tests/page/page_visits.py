"""What the tests of the page ask, and a browser window that opens it."""

import json
from typing import Any
from urllib.parse import quote

from tonnage.kernel.encoding import encode
from tonnage.verbs.ask import ask

PATIENCE = 30_000  # ms that a test waits for what the page shows
# What a screen reader is told, all of it: what is said next takes the place of what was said before.
HEARD = """window.heard = [];
document.addEventListener("DOMContentLoaded", () => {
  const line = document.getElementById("say");
  if (line) new MutationObserver(() => heard.push(line.textContent)).observe(line, { childList: true, characterData: true, subtree: true });
});"""

# Until the page has heard of another address: the page's own listener stands before this one.
FOLLOWED = """address => new Promise((done) => {
  if (location.hash === address) return done();
  addEventListener("hashchange", done, { once: true });
  location.hash = address;
})"""

LARGE = "model=llama-3.1-70b&on=8x8xH100-SXM-80GB&tensor_parallel_size=8&pipeline_parallel_size=4&global_batch_size=128&sequence_length=8192&tokens=100B"
QUESTIONS = {
    "fits": "tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB",
    "tight": f"tab=train&{LARGE}",
    "no": f"tab=train&{LARGE}&micro_batch_size=2&as_is=true",
    "tune": "tab=tune&model=llama-3.1-8b&on=RTX-4090&method=qlora&sequence_length=2048",
    "serve": "tab=serve&model=llama-3.1-70b&on=4xH100-SXM-80GB&weights=fp8&input_tokens=8192&output_tokens=1024&concurrency=64",
    "wrong": "tab=train&model=lama-3.1-8b",
    "empty": "tab=train",
}


class Visit:
    """A browser window on the page, with what it asked for and what its console said."""

    def __init__(self, browser: Any, server: str, **context: Any):
        self.server = server
        self.context = browser.new_context(
            **{"viewport": {"width": 1440, "height": 1000}, "locale": "en-GB", **context}
        )
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.rstrip("/"))
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(HEARD)
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.loaded = False
        self.page = self._tab()

    def _tab(self) -> Any:
        page = self.context.new_page()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.wrong.append(error.stack or str(error)))
        page.on(
            "console",
            lambda said: (
                self.wrong.append(said.text)
                if said.type == "error" and "Failed to load resource" not in said.text
                else None
            ),
        )
        return page

    def open(self, fragment: str = "", view: str = "") -> Any:
        """The page, drawn, with a view of its answer open."""
        named = QUESTIONS.get(fragment, fragment) + (f"&view={view}" if view else "")
        self.page.goto("about:blank")
        self.page.goto(f"{self.server}#{quote(named, safe='=&:/')}" if named else self.server)
        self.page.wait_for_selector("body[data-ready]")
        return self.page

    def go_on(self, fragment: str = "", view: str = "") -> Any:
        """The page on this question, loaded once: a link that is followed on the page costs a tenth of a load. For tests
        that look at what is drawn.
        """
        if not self.loaded:
            self.loaded = True
            return self.open(fragment, view)
        named = QUESTIONS.get(fragment, fragment) + (f"&view={view}" if view else "")
        self.page.evaluate(FOLLOWED, f"#{quote(named, safe='=&:/')}")
        return self.settle()

    def settle(self) -> Any:
        """Until the newest question is answered."""
        self.page.wait_for_selector("body:not([data-asking]):not([data-state=loading])")
        return self.page

    def rest(self) -> Any:
        """Until what is asked beside the main answer is there too."""
        self.settle()
        self.page.wait_for_function("() => !document.querySelector('.old, .waiting')")
        return self.page

    def hears(self, text: str) -> None:
        """Until a screen reader has been told this."""
        self.page.wait_for_function("text => heard.includes(text)", arg=text)


# Inputs that are no options: their boxes, where the element's name is another.
BOXES = {"on": "#machine", "model": "#model", "nodes": "#nodes", "each": "#each"}


def field(page: Any, name: str) -> Any:
    """The input of an option, with the slot of the sentence or the settings opened behind which it stands."""
    box = page.locator(BOXES.get(name, f"#in-{name}"))
    if box.count():
        return box
    closed(page)
    slot = page.locator(f"[data-fields~='{name}']")
    (slot if slot.count() else page.locator("#all-settings")).click()
    box.wait_for()
    return box


def closed(page: Any) -> Any:
    """The page with nothing open over it."""
    while page.locator(".pop, #settings, #saved:not([hidden])").count():
        page.keyboard.press("Escape")
    return page


def turn(page: Any, view: str) -> None:
    """Another view of the answer."""
    closed(page).locator(f"#view-{view}").click()


def asked(verb: str, question: dict[str, Any]) -> dict[str, Any]:
    """The document that the page shows, from the library."""
    return dict(json.loads(encode(ask(verb, question).document)))
