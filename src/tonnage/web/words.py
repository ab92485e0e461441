"""The texts of a document in another language, beside it: a question may have a field `lang`, and its answer, or the
error that it is refused with, then has `said`, each text of the document that was made from data to the same text in
that language. The document itself stays English, as every document is; texts without data are those of
/locale/LANGUAGE.json.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from tonnage.kernel.encoding import encode
from tonnage.kernel.message import plain

LANG = "lang"
ENGLISH = "en"


def parted(question: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The question without `lang`, and the language. UnknownName for a language without a catalogue."""
    if not isinstance(question, Mapping) or LANG not in question:
        return question, ENGLISH
    fields = {name: value for name, value in question.items() if name != LANG}
    language = question[LANG]
    if language != ENGLISH:
        from tonnage.kernel.errors import shown
        from tonnage.kernel.registry import unknown
        from tonnage.language import LANGUAGES

        if language not in LANGUAGES:
            raise unknown("language", language if isinstance(language, str) else shown(language), LANGUAGES)
    return fields, str(language)


def encoded(document: Any, language: str) -> bytes:
    """The document as JSON; in another language than English with `said`."""
    if language == ENGLISH:
        return encode(document)
    from tonnage.language import speaking, worded

    words: dict[str, str] = {}

    def noted(text: str) -> str:
        english = plain(text)
        if english not in words and (translated := plain(worded(text))) != english:
            words[english] = translated
        return english

    with speaking(language):
        body = encode(document, noted)
    return body[:-1] + b',"said":' + msgspec.json.encode(words) + b"}"


def said_in(language: str, text: str) -> str:
    """A text that is shown and kept nowhere, in a language."""
    from tonnage.language import speaking, worded

    with speaking(language):
        return worded(text)
