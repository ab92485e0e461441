"""What Python says in Chinese the page says in the same words: they come beside the document."""

from page_visits import QUESTIONS

from tonnage.kernel.encoding import builtins
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message, plain
from tonnage.kernel.reach import Reach
from tonnage.language import speaking, worded
from tonnage.verbs.ask import ask

ASKED = [
    ("train", {"model": "llama-3.1-70b", "on": "8x8xH100-SXM-80GB", "tensor_parallel_size": 8, "tokens": "100B"}),
    ("train", {"model": "llama-3.1-8b", "on": "RTX-4090", "method": "qlora"}),
    ("serve", {"model": "llama-3.1-70b", "on": "4xH100-SXM-80GB", "weights": "fp8", "concurrency": 64}),
    ("rules", {}),
]
REFUSED = [
    ("train", {"model": "lama-3.1-8b", "on": "8xh100"}),
    ("train", {"model": "llama-3.1-8b", "on": "8xh100", "tensor_parallel_size": 6}),
    ("serve", {"model": "llama-3.1-8b", "on": "h100", "kv_cache": "x"}),
]
SAID = """async questions => {
    const { ask } = await import("/js/api.js"), { tr } = await import("/js/words.js"), said = {};
    const walk = thing => typeof thing === "string" ? said[thing] = tr(thing) : Object.values(thing ?? {}).forEach(walk);
    for (const [verb, question] of questions) {
        await ask(verb, question).then(({ document }) => walk(document), error => walk(error.message));
    }
    return said;
}"""


def _messages(thing):
    if isinstance(thing, Message):
        yield thing
    elif isinstance(thing, dict | list):
        for each in thing.values() if isinstance(thing, dict) else thing:
            yield from _messages(each)


def _said():
    within = Reach(files=None, hubs=False, machine=False)
    for question in ASKED:
        yield from _messages(builtins(ask(*question, within).document))
    for question in REFUSED:
        try:
            ask(*question, within)
        except TonnageError as error:
            yield from _messages([str(error)])


def test_the_page_says_a_text_as_python_does(visiting):
    page = visiting().open(QUESTIONS["empty"] + "&lang=zh")
    script = page.evaluate(SAID, [*ASKED, *REFUSED])
    with speaking("zh"):
        python = {plain(text): plain(worded(text)) for text in _said()}
    assert len(python) > 200
    assert {text: script.get(text) for text in python if script.get(text) != python[text]} == {}


def test_a_page_in_english_asks_for_no_other_words(visiting):
    window = visiting()
    page = window.open(QUESTIONS["fits"])
    sent = page.evaluate(
        """async () => { const { ask } = await import("/js/api.js"), { document } = await ask("rules", { names: ["A6"] });
        return [Object.keys(document), (await import("/js/api.js")).wordsOf("fits") ?? null]; }"""
    )
    assert "said" not in sent[0]
    assert sent[1] is None
