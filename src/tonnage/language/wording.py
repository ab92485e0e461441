"""A Message in another language: the translation of its template, with its values in that language put in.

A value that is a Message is worded itself, and so are the texts of a Series. A text without data, such as the name of
a term, is looked up as a whole. Where the translation of a template has a blank beside a place, names stand there, and
they stay as they are typed.
"""

from collections.abc import Iterable, Iterator, Mapping
from string import Formatter
from typing import Any

from tonnage.kernel.message import Message, Series, plain
from tonnage.language import catalogues
from tonnage.language.spacing import WIDE, joined

Pieces = tuple[tuple[str, str | None, str, str | None], ...]  # literal text, name, format and conversion of a place
NAMES = ", "  # the separator of a list of names
# Between sentences or clauses, and between the items of a list.
SEPARATORS = {"; ": "；", ", ": "，", ": ": "：", " or ": " 或 ", " and ": " 和 ", "; and ": "；"}
SIGNS = {
    ": ": "：",
    "; ": "；",
    ", ": "，",
    ".": "。",
    "?": "？",
    " (": "（",
    ")": "）",
}  # alone between two values, or behind the last
BEFORE_LAST = {"and": " 和 ", "or": " 或 "}


class Wording:
    """Texts in one language."""

    def __init__(self, language: str):
        self.language = language
        self.texts: Mapping[str, str] = catalogues.texts(language)

    def text(self, text: str) -> str:
        if isinstance(text, Series):
            return self._series(text)
        if isinstance(text, Message):
            return self._message(text)
        return self.exact(text)

    def exact(self, text: str) -> str:
        """A text without data: its own translation, or the text itself."""
        found = self._known(text)
        return text if found is None else found

    def _message(self, message: Message) -> str:
        whole = self.texts.get(plain(message))  # some texts have words of their own
        if whole is not None:
            return whole
        into = self._known(message.template)
        if into is not None:
            return joined(self._pieces(message, parsed(into), translated=True))
        pieces = parsed(message.template)
        if any(any(map(str.isalpha, literal)) for literal, *_ in pieces):
            return plain(message)
        made = list(self._pieces(message, pieces, translated=False))
        # Nothing but signs between values: they are the language's where a value is.
        return joined(SIGNS.get(piece, piece) for piece in made) if any(map(WIDE.search, made)) else plain(message)

    def _pieces(self, message: Message, pieces: Pieces, *, translated: bool) -> Iterator[str]:
        """The literal texts of a template and its values between them."""
        for at, (literal, name, form, conversion) in enumerate(pieces):
            yield literal
            if name is None:
                continue
            if form or conversion:
                shown = f"{{{name}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}}}"
                yield shown.format(**message.values)
                continue
            if name[0] in "@-":  # an option
                yield message.values.get(name, name.removeprefix("@"))
                continue
            after = pieces[at + 1][0] if at + 1 < len(pieces) else ""
            yield self._value(
                message.values[name], named=translated and (literal.endswith(" ") or after.startswith(" "))
            )

    def _value(self, value: Any, *, named: bool) -> str:
        if isinstance(value, BaseException):
            value = str(value)
        if not isinstance(value, str):
            return str(value)
        if isinstance(value, Series) and (named or value.separator == NAMES):
            return self._list(value, named=named)
        if isinstance(value, Message):
            return self.text(value)
        return value if named and " " not in value else self.exact(value)

    def _list(self, series: Series, *, named: bool) -> str:
        items = [item if named and not isinstance(item, Message) else self.text(item) for item in series.items]
        separator = "、" if series.separator == NAMES else SEPARATORS.get(series.separator, series.separator)
        if not series.last or len(items) < 2:
            return separator.join(items)
        return separator.join(items[:-1]) + BEFORE_LAST[series.last] + items[-1]

    def _series(self, series: Series) -> str:
        if series.last:
            return self._list(series, named=False)
        items = list(map(self.text, series.items))
        if series.separator in ("", " "):  # sentences, or parts of one
            return joined(_between(items, series.separator))
        if not any(map(WIDE.search, items)):  # nothing but names, as of a source
            return plain(series)
        return SEPARATORS.get(series.separator, series.separator).join(items)

    def _known(self, text: str) -> str | None:
        found = self.texts.get(text)
        if found is not None or not text:
            return found
        bare = text.strip()
        if len(bare) < len(text):
            found = self.texts.get(bare)
            start = text.index(bare) if bare else 0
            return None if found is None else text[:start] + found + text[start + len(bare) :]
        if text[-1] == "." and (found := self.texts.get(text[:-1])) is not None:
            return f"{found}。"
        return None


def parsed(template: str) -> Pieces:
    return tuple(
        (literal, name, form or "", conversion) for literal, name, form, conversion in Formatter().parse(template)
    )


def _between(items: Iterable[str], separator: str) -> Iterable[str]:
    """The items, with the separator where a language without blanks between its sentences needs it."""
    before = ""
    for item in items:
        if separator and before and not (WIDE.match(before[-1:]) or WIDE.match(item)):
            yield separator
        yield item
        before = item or before
