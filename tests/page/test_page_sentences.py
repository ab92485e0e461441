"""What Python says in Chinese the page says in the same words: one catalogue, and the same way to use it."""

import json
import shlex

import msgspec
from page_visits import QUESTIONS, asked

from errors_in_chinese import ENDS, ERRORS
from tonnage import cli
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import plain
from tonnage.language import page_catalogue, speaking, worded

ASKED = [
    (
        "train",
        {
            "model": "llama-3.1-70b",
            "on": "8x8xH100-SXM-80GB",
            "tensor_parallel_size": 8,
            "pipeline_parallel_size": 4,
            "tokens": "100B",
        },
    ),
    ("train", {"model": "llama-3.1-8b", "on": "RTX-4090", "method": "qlora"}),
    ("train", {"model": "deepseek-v3", "on": "2x8xH800-SXM-80GB", "method": "lora"}),
    ("serve", {"model": "llama-3.1-70b", "on": "4xH100-SXM-80GB", "weights": "fp8", "concurrency": 64}),
    ("serve", {"model": "mixtral-8x7b", "on": "MI300X"}),
]
REFUSED = [
    ("train", {"model": "lama-3.1-8b", "on": "8xh100"}),
    ("train", {"model": "llama-3.1-8b", "on": "8xh10"}),
    ("train", {"model": "llama-3.1-8b", "on": "8xh100", "tensor_parallel_size": 6}),
    ("serve", {"model": "llama-3.1-8b", "on": "8xh100", "kv_cache": "x"}),
]


def sentences(thing):
    """Names, texts, sources, reasons and warnings of a document."""
    if isinstance(thing, dict):
        for name, value in thing.items():
            if isinstance(value, str) and name in ("name", "text", "source", "why", "unit"):
                yield value
            else:
                yield from sentences(value)
    elif isinstance(thing, list):
        for each in thing:
            if isinstance(each, str):
                yield each
            else:
                yield from sentences(each)


def said():
    found = set()
    for question in ASKED:
        found |= set(sentences(asked(*question)))
    for question in REFUSED:
        try:
            asked(*question)
        except TonnageError as error:
            found.add(str(error))
    refused = set(_refused())
    assert len(refused) >= len(ERRORS) - 3, "these commands are refused; a few say the same"
    found |= refused
    return sorted(found - {""})


def _refused():
    """What the command line says of its own errors."""
    for command in (*ERRORS, *ENDS):
        try:  # what is refused when the answer is there already is said by main
            cli._run(shlex.split(command))
        except TonnageError as error:
            yield str(error)


def test_the_page_translates_a_sentence_as_python_does(visiting):
    page = visiting().open(QUESTIONS["empty"])
    texts = said()
    assert len(texts) > 200
    with speaking("zh"):
        python = {text: worded(plain(text)) for text in texts}  # as finished sentences, which is all that the page has
    code = """async ([words, texts]) => {
        const { translator } = await import("/js/sentences.js"), said = translator(words);
        return Object.fromEntries(texts.map(text => [text, said(text)])); }"""
    words = json.loads(msgspec.json.encode(page_catalogue("zh")))
    own = {"exact": {**words["exact"], **_python_first()}, "patterns": words["patterns"]}
    script = page.evaluate(code, [own, texts])
    assert {text: script[text] for text in texts if script[text] != python[text]} == {
        text: python[text] for text in texts if script[text] != python[text]
    }


def _python_first():
    """The page prefers its own word where both have one; here the sentences are compared, not that choice."""
    from tonnage.language.catalogues import texts

    return dict(texts("zh"))
