"""Texts in the current language: a Message by its template and values, another text as a whole."""

import subprocess
import sys

import pytest

from tonnage import language
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.message import Message, joined
from tonnage.language import catalogues, page_catalogue, say, speak, speaking, worded

TEXTS = {
    "{name} must be {what}.": "{name} 应为{what}。",
    "a whole number": "整数",
    "needs {size}": "需要 {size}",
    "{part} of {whole} left": "{whole} 中剩 {part}",
}


@pytest.fixture
def chinese(monkeypatch):
    """A small catalogue in place of the shipped ones."""
    monkeypatch.setattr(catalogues, "texts", lambda _: TEXTS)
    with speaking("zh"):
        yield


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


def test_a_message_is_put_into_words_by_its_template_and_its_values_too(chinese):
    assert worded(Message("{name} must be {what}.", name="layers", what="a whole number")) == "layers 应为整数。"
    assert worded(Message("{part} of {whole} left", part=3, whole=8)) == "8 中剩 3"


def test_what_is_joined_is_put_into_words_one_by_one(chinese):
    assert worded(joined("; ", ("a whole number", Message("needs {size}", size="8 GiB")))) == "整数；需要 8 GiB"
    assert worded(joined("; ", ("llama", "gpt"))) == "llama; gpt"


def test_signs_between_values_are_the_languages_where_a_value_is(chinese):
    assert worded(Message("{where}: {what}.", where="a.json", what="a whole number")) == "a.json：整数。"
    assert worded(Message("{where}: {what}.", where="a.json", what="x")) == "a.json: x."


def test_a_finished_sentence_is_not_taken_apart(chinese):
    assert worded("layers must be a whole number.") == "layers must be a whole number."
    assert worded("a whole number\nneeds 8 GiB") == "a whole number\nneeds 8 GiB"


def test_the_page_gets_every_text_of_a_language():
    made = page_catalogue("zh")
    assert made["fits"] == "放得下"
    assert page_catalogue("en") == {}
