"""A finished English sentence in another language: by its template, and its parts by theirs; several sentences one by
one, a list item by item.

A template of few words, such as "{0} of {1}", fits much that was not made from it. So one counts only where nothing
English is left over in its places; else the sentence stays as it is, unless most of it is the template's own.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice

from tonnage.language import catalogues
from tonnage.language.spacing import WIDE
from tonnage.language.templates import Template

LONGEST = 4000  # characters of a sentence that are looked up; what is longer is shown as it is
DEEPEST = 6  # sentences in sentences
MOST_TRIED = 12  # templates for one sentence
MOST_SENTENCES = (
    8  # that are tried together, as one text may have been made of several; of more, each is looked up by itself
)
# Letters, and share of a sentence's: where so much is the template's own, what is put in may stay English.
OWN_LETTERS, OWN_SHARE = 12, 0.25
# Two plain words in a row: what is not a name, a number, a path or code.
_PROSE = re.compile(r"(?<![\w/.`'\"-])[a-z]{2,} [a-z]{2,}(?![\w/-])")
_QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)")  # names, as they were typed
_SENTENCES = re.compile(r"(?<=[.?!]) (?=\S)")
_SEVERAL = re.compile(r"[.?!;] |, and ")
# What parts a list, and how it is written.
_LISTS = (
    (re.compile(r"; "), "；"), (re.compile(r", "), "，"), (re.compile(r",? and |, "), "、"),
    (re.compile(r",? or |, "), "、"),
)  # fmt: skip
_SIGNS = (" + ", " * ", " / ")  # of a TERM's text
_LETTER = re.compile(r"(?<![\w.])[b-zB-Z](?![\w.])")  # of a formula, whose code is the same in all languages
_LARGEST = re.compile(r"max\((.+)\)")
_NAME = re.compile(r"[\w.-]+")  # may be an option's, such as optimizer, and is a word of the answers as well
_ITEM = r"(?:'[^']*'|`[^`]*`|[^\s,;'`]+)"
_AND, _OR = re.compile(r",? and "), re.compile(r",? or ")
# As they are typed; what stands between them is translated.
_NAMES = re.compile(rf"{_ITEM}(?:(?:, |,? and |,? or ){_ITEM})*")
_EDGES = re.compile(r"^(\s*)(.*?)(\s*)$", re.DOTALL)


def translated(text: str, language: str) -> str:
    """The text in `language`; the same text where nothing is known of it."""
    if not text or len(text) > LONGEST or not any(map(str.isalpha, text)):
        return text
    return _translated(text, language)


@lru_cache(maxsize=4096)
def _translated(text: str, language: str) -> str:
    return _Translator(language).said(text, 0)


def as_typed(text: str) -> str | None:
    """Names with the commas of Chinese; None for what is no list of names."""
    return _as_typed(text) if _NAMES.fullmatch(text) else None


class _Translator:
    """One sentence; its pieces are looked up once, however often they come back in other cuts."""

    def __init__(self, language: str):
        self.texts, self.templates = catalogues.texts(language), catalogues.templates(language)
        self.before: dict[str, str] = {}

    def said(self, text: str, depth: int) -> str:
        exact = self.texts.get(text)
        if exact is not None:
            return exact
        before, bare, after = _EDGES.findall(text)[0]
        if not (before or after):
            if bare not in self.before:
                self.before[bare] = self._bare(bare, depth)
            return self.before[bare]
        made = self.said(bare, depth)
        if depth and made != bare:  # between sentences of a language that has no blanks there
            before, after = "" if WIDE.match(made) else before, "" if WIDE.match(made[-1:]) else after
        return f"{before}{made}{after}"

    def _bare(self, text: str, depth: int) -> str:
        if depth >= DEEPEST or not any(map(str.isalpha, text)):
            return text
        if "\n" in text:
            return "\n".join(self.said(line, depth) for line in text.split("\n"))
        if text[0] == "(" and text[-1] == ")":
            made = self.said(text[1:-1], depth + 1)
            return text if made == text[1:-1] else f"（{made}）"
        if text[-1] == "." and (exact := self.texts.get(text[:-1])) is not None:
            return f"{exact}。"
        of_a_term = (self._list(text.split(sign), sign, depth) for sign in _SIGNS if sign in text)
        summed = None if _LETTER.search(text) else next(chain.from_iterable(of_a_term), None)
        return summed or self._by_template(text, depth) or next(self._in_pieces(text, depth), text)

    def _by_template(self, text: str, depth: int) -> str | None:
        """By the template with the most literal text that leaves nothing English over."""
        second = None
        found = list(islice(self.templates.matches(text), MOST_TRIED))
        for template, parts in sorted(found, key=_is_loose):
            if _is_loose((template, parts)) and (whole := self._wholly_in_pieces(text, depth)):
                return whole
            inside = [
                _as_typed(part) if named and _NAMES.fullmatch(part) else self.said(part, depth + 1)
                for part, named in zip(parts, template.named, strict=True)
            ]
            if not any(_is_english(each) for each in inside):
                return template.filled(inside)
            if second is None and template.weight >= max(OWN_LETTERS, OWN_SHARE * len(text)):
                second = template.filled(inside)
        return self._wholly_in_pieces(text, depth) or second

    def _wholly_in_pieces(self, text: str, depth: int) -> str | None:
        return next((made for made in self._in_pieces(text, depth) if not _is_english(made)), None)

    def _in_pieces(self, text: str, depth: int) -> Iterator[str]:
        """Sentence by sentence; or as a list, where every item is known or needs no translation."""
        pieces = _SENTENCES.split(text)
        if len(pieces) > MOST_SENTENCES:
            yield " ".join(self.said(piece, depth + 1) for piece in pieces)
            return
        for cut in range(len(pieces) - 1, 0, -1):
            head, tail = " ".join(pieces[:cut]), " ".join(pieces[cut:])
            made = self.said(head, depth + 1)
            if made != head and (cut == 1 or not _is_english(made)):
                yield made + ("" if WIDE.match(made[-1:]) else " ") + self.said(tail, depth + 1)
        if largest := _LARGEST.fullmatch(text):
            yield from (f"max({made.replace('，', ', ')})" for made in self._in_pieces(largest[1], depth))
        head, colon, tail = text.partition(": ")
        if colon:
            yield from self._list([head, tail], "：", depth)
            if (made := self.said(tail, depth + 1)) != tail and not _is_english(made):
                yield f"{head}：{made}"  # of an offer, a file, a machine
        for between, comma in _LISTS:
            pieces = between.split(text)
            if len(pieces) > 1 and not all(map(_NAME.fullmatch, pieces)):
                yield from self._list(pieces, comma, depth)

    def _list(self, pieces: Sequence[str], comma: str, depth: int) -> Iterator[str]:
        made = [self.said(piece, depth + 1) for piece in pieces]
        if made != pieces and (comma == "；" or not any(_is_english(each) for each in made)):
            yield comma.join(made)


def _as_typed(names: str) -> str:
    """Names stay as they are; the commas and the last "or" are the language's."""
    made = _OR.sub(" 或 ", _AND.sub(" 和 ", names))
    return made.replace(", ", "、")


def _is_loose(found: tuple[Template, Sequence[str]]) -> bool:
    """Whether a template may have caught a word of one part of the text, as "{0} accelerators" the last one of
    "cheaper; 3 accelerators".
    """
    template, parts = found
    if any(part.endswith(",") for part in parts) or (not template.literals[0] and _SEVERAL.search(parts[0])):
        return True
    ends = parts[-1] if template.literals[-1] in ("", ".") else ""
    return bool(_SENTENCES.search(ends)) or (template.weight < OWN_LETTERS and "; " in ends)


def _is_english(text: str) -> bool:
    return bool(_PROSE.search(_QUOTED.sub("", text)))
