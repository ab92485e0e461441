"""Which text was a finished sentence made from? "{0} must be at least {1}. Got {2}." is found by its literal words,
without regular
expressions: the time is linear in the sentence for each text that shares a word with it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from tonnage.language.spacing import joined

_PLACE = re.compile(r"\{(\w+)[^{}]*\}")
_BESIDE = re.compile(r"(?<!\})(^|.)(?=\{)\{(\w+)[^{}]*\}(?=(.|$))")
_WORD = re.compile(r"\w+")


class Template:
    """A text with numbered places, and the same in another language."""

    def __init__(self, text: str, into: str):
        self.text, self.into = text, into
        pieces = _PLACE.split(text)
        self.literals, self.places = pieces[::2], pieces[1::2]
        self.weight = sum(map(len, self.literals))

    @cached_property
    def named(self) -> list[bool]:
        """Of each place, whether a name stands in it, which is not translated: the translation has a blank beside
        it, as around a name in Latin letters between Han characters.
        """
        beside = {place: before + after for before, place, after in _BESIDE.findall(self.into)}
        return [" " in beside.get(place, "") for place in self.places]

    def words(self) -> set[str]:
        """Words of the text that are whole whatever is put in."""
        return {
            found[0]
            for number, literal in enumerate(self.literals)
            for found in _WORD.finditer(literal)
            if (found.start() or not number) and (found.end() < len(literal) or number == len(self.literals) - 1)
        }

    def parts(self, sentence: str, *, longest: bool = False) -> list[str] | None:
        """What was put in, or None. Every part is as short as can be, or the first ones as long as can be; a part
        may be empty.
        """
        first, *between, last = self.literals
        at, end = len(first), len(sentence) - len(last)
        if end < at or not sentence.startswith(first) or not sentence.endswith(last):
            return None
        parts = []
        if longest:
            for literal in reversed(between):
                found = sentence.rfind(literal, at, end)
                if found < 0:
                    return None
                parts.append(sentence[found + len(literal) : end])
                end = found
            parts = [sentence[at:end], *reversed(parts)]
        else:
            for literal in between:
                found = sentence.find(literal, at, end)
                if found < 0:
                    return None
                parts.append(sentence[at:found])
                at = found + len(literal)
            parts.append(sentence[at:end])
        return parts if self._agree(parts) else None

    def _agree(self, parts: Sequence[str]) -> bool:
        """A place that stands twice has one value."""
        return len(set(zip(self.places, parts, strict=True))) == len(set(self.places))

    def filled(self, parts: Sequence[str]) -> str:
        values = dict(zip(self.places, parts, strict=True))
        pieces = _PLACE.split(self.into)
        return joined(values[piece] if number % 2 else piece for number, piece in enumerate(pieces))

    @property
    def pattern(self) -> list[str]:
        """As a regular expression that Python and JavaScript read alike, and a template of its groups."""
        group: dict[str, int] = {}
        regex = _escaped(self.literals[0])
        for place, literal in zip(self.places, self.literals[1:], strict=True):
            regex += (rf"(?:\{group[place] + 1})" if place in group else r"([\s\S]*?)") + _escaped(literal)
            group.setdefault(place, len(group))
        into = _PLACE.sub(lambda place: f"{{{group[place[1]]}}}", self.into)
        return [f"^{regex}$", into]


def _escaped(literal: str) -> str:
    """Escaped for JavaScript too, which with /u knows no needless escapes."""
    return re.sub(r"[\\^$.*+?()[\]{}|/]", r"\\\g<0>", literal)


class Found(NamedTuple):
    template: Template
    parts: list[str]


class Templates:
    """Many templates: each is kept under its rarest word, so that few are tried for a sentence."""

    def __init__(self, templates: Iterable[Template]):
        self.all = sorted(templates, key=lambda each: (-each.weight, each.text))

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        words = [each.words() for each in self.all]
        often = Counter(word for each in words for word in each)
        index: dict[str, list[int]] = {}
        for number, each in enumerate(words):
            index.setdefault(min(each, key=lambda word: (often[word], word), default=""), []).append(number)
        return index

    def matches(self, sentence: str) -> Iterator[Found]:
        """The templates that the sentence can have been made from, with what was put in; the most literal text comes
        first.
        """
        index = self._by_word
        tried = {number for word in {"", *_WORD.findall(sentence)} for number in index.get(word, ())}
        for number in sorted(tried):
            parts = self.all[number].parts(sentence)
            if parts is not None:
                yield Found(self.all[number], parts)
                other = self.all[number].parts(sentence, longest=True)
                if other is not None and other != parts:
                    yield Found(self.all[number], other)

    def match(self, sentence: str) -> Found | None:
        """The one with the most literal text."""
        return next(self.matches(sentence), None)
