"""Texts in the current language; sentences found again by the text that they were made from."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage import language
from tonnage.kernel.errors import UnknownName
from tonnage.language import catalogues, page_catalogue, say, sentences, speak, speaking, worded
from tonnage.language.templates import Template, Templates

TEXTS = {
    "{0} must be at least {1}. Got {2}.": "{0} 至少为 {1}。收到 {2}。",
    "{0} must be {1}.": "{0} 应为 {1}。",
    "a whole number": "整数",
    "{0} is {0}": "{0} 就是 {0}",
    "needs {size}": "需要 {size}",
    "{0} of {1} left": "{1} 中剩 {0}",
}


@pytest.fixture
def chinese(monkeypatch):
    """A small catalogue in place of the shipped ones."""
    made = Templates([Template(text, into) for text, into in TEXTS.items() if "{0}" in text])
    monkeypatch.setattr(catalogues, "texts", lambda _: TEXTS)
    monkeypatch.setattr(catalogues, "templates", lambda _: made)
    sentences._translated.cache_clear()
    with speaking("zh"):
        yield
    sentences._translated.cache_clear()


def test_english_is_spoken_unless_another_language_is_asked_for():
    assert language.current() == "en"
    assert say("needs {size}", size="8 GiB") == "needs 8 GiB"
    assert worded("anything") == "anything"


def test_english_opens_no_catalogue():
    code = "import sys; from tonnage.language import say, worded; say('fits'); worded('fits'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"gettext", "tonnage.language.catalogues"} & set(done.stdout.split())


def test_a_language_is_spoken_within_a_block_only():
    with speaking("zh"):
        assert language.current() == "zh"
        with speaking("en"):
            assert language.current() == "en"
        assert language.current() == "zh"
    assert language.current() == "en"


def test_threads_speak_their_own_language():
    from threading import Thread

    heard = []
    with speaking("zh"):
        other = Thread(target=lambda: heard.append(language.current()))
        other.start()
        other.join()
    assert heard == ["en"]


def test_an_unknown_language_names_those_that_there_are():
    with pytest.raises(UnknownName, match="zh"):
        speak("zx")


def test_values_are_put_into_the_translation(chinese):
    assert say("needs {size}", size="8 GiB") == "需要 8 GiB"
    assert say("not translated {x}", x=1) == "not translated 1"


def test_a_finished_sentence_is_found_by_its_template_and_its_parts_too(chinese):
    assert worded("layers must be at least 1. Got 0.") == "layers 至少为 1。收到 0。"
    assert worded("layers must be a whole number.") == "layers 应为整数。"


def test_the_most_literal_text_wins(chinese):
    assert worded("x must be at least 1. Got y must be 2.") == "x 至少为 1。收到 y must be 2。"


def test_places_may_change_their_order_and_must_agree_where_they_stand_twice(chinese):
    assert worded("3 of 8 left") == "8 中剩 3"
    assert worded("a is a") == "a 就是 a"
    assert worded("a is b") == "a is b"


def test_lines_are_looked_up_each_by_itself(chinese):
    assert worded("a whole number\nnothing known") == "整数\nnothing known"


@given(st.lists(st.text("abc ,.x", max_size=12), min_size=3, max_size=3))
def test_what_was_put_in_is_found_again(parts):
    template = Template("{0}<at least>{1}<Got>{2}", "{2}|{1}|{0}")
    assert template.parts("{}<at least>{}<Got>{}".format(*parts)) == parts
    assert template.filled(parts) == "|".join(reversed(parts))


def test_a_hostile_sentence_is_not_parted_in_every_way():
    """Twelve places and a text that nearly matches: a regular expression would not come to an end."""
    made = Templates([Template("a".join(f"{{{i}}}" for i in range(12)) + "b", "")])
    assert made.match("a" * 3000) is None


def test_of_thousands_of_templates_few_are_tried(monkeypatch):
    made = Templates([Template(f"the {{0}} of word{i} is {{1}}", f"{i} {{0}} {{1}}") for i in range(3000)])
    tried = []
    parts = Template.parts
    monkeypatch.setattr(Template, "parts", lambda self, sentence: tried.append(self) or parts(self, sentence))
    found = made.match("the weight of word1234 is 3")
    assert found.template.filled(found.parts) == "1234 weight 3"
    assert tried == [found.template]


def test_the_pages_catalogue_finds_the_same_sentences():
    import re

    for template in Templates([Template(text, into) for text, into in TEXTS.items() if "{0}" in text]).all:
        regex, into = template.pattern
        values = {number: f"v{number}" for number in template.places}
        finished = template.text.format(*[values[i] for i in sorted(values)])
        groups = re.search(regex, finished).groups()
        assert into.format(*groups) == template.into.format(*[values[i] for i in sorted(values)])


def test_the_page_gets_every_text_of_a_language():
    made = page_catalogue("zh")
    assert made["exact"]["fits"] == "放得下"
    assert page_catalogue("en") == {"exact": {}, "patterns": []}
