"""The language in which answers are shown. Every text is written in English where it is said; a catalogue has it in
another language.

`say` takes a text of the program's own, with named places: `say("needs {size}", size="8 GiB")`. `worded` takes a text
that came from elsewhere (an error, a warning, the name of a term): a Message by its template and its values, another
text as a whole. What has no translation stays English. English opens no file, and documents (`--json`) are English in
every language.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

LANGUAGES = ("en", "zh")
_current: ContextVar[str] = ContextVar("language", default="en")


def current() -> str:
    """The language of this thread or task."""
    return _current.get()


def speak(language: str) -> None:
    """From here on, in this thread or task, answers are shown in `language`."""
    _current.set(_known(language))


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Answers within are shown in `language`.

    >>> with speaking("zh"):
    ...     current()
    'zh'
    """
    before = _current.set(_known(language))
    try:
        yield
    finally:
        _current.reset(before)


def say(text: str, /, **values: Any) -> str:
    """A text of the program in the current language, with its values put in.

    >>> say("needs {size}", size="8 GiB")
    'needs 8 GiB'
    """
    language = _current.get()
    if language != "en":
        from tonnage.language.catalogues import texts

        text = texts(language).get(text, text)
        if values:
            from tonnage.language.spacing import filled

            return filled(text, values)
    return text.format(**values) if values else text


def say_as(context: str, text: str) -> str:
    """A word that has another translation here than elsewhere: gettext's msgctxt."""
    language = _current.get()
    if language == "en":
        return text
    from tonnage.language.catalogues import BETWEEN, texts

    return texts(language).get(f"{context}{BETWEEN}{text}") or say(text)


def worded(text: str) -> str:
    """A Message, or a text of the catalogue, in the current language; the same text where nothing is known of it."""
    language = _current.get()
    if language == "en":
        return text
    from tonnage.language.wording import Wording

    return Wording(language).text(text)


def page_catalogue(language: str) -> dict[str, str]:
    """What the page says in a language: English text to text."""
    if _known(language) == "en":
        return {}
    from tonnage.language.catalogues import of_the_page

    return of_the_page(language)


def _known(language: str) -> str:
    if language in LANGUAGES:
        return language
    from tonnage.kernel.registry import unknown

    raise unknown("language", language, LANGUAGES)
