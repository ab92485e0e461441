"""Words of a command line in which options of other tools stand, as words of ours; what was read as what, and what was
left out. An option that means something else stays, and is refused where options are read.
"""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from msgspec import DecodeError, Struct, ValidationError, json

from tonnage.spelling import Tool, tools

YES, NO = ("true", "yes", "1", "on"), ("false", "no", "0", "off")
USERS = frozenset({"--concurrency", "--users", "--max-concurrency", "--max-num-seqs", "-np", "--parallel"})
ENGINE = "--engine"
THOUSANDS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kmgt])")
_NEGATIVE = re.compile(r"-[.\d]")


class Translation(Struct, frozen=True):
    """The words with options of ours, what was `read` as what, and the options that were `left_out`."""

    words: list[str]
    read: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()


def translated(words: Sequence[str], known: Container[str], verb: str) -> Translation:
    """The words as options of ours, as far as other tools' options mean the same. `known`: what is ours already."""
    if all(not word.startswith("-") or word.partition("=")[0].replace("_", "-") in known for word in words):
        return Translation(list(words))
    mine = [tool for tool in tools() if tool.verb == verb]
    return _Reader(words, known, mine).translation()


class _Reader:
    def __init__(self, words: Sequence[str], known: Container[str], mine: Sequence[Tool]):
        self.left, self.known, self.mine = list(words), known, mine
        self.flags = {word.partition("=")[0].replace("_", "-") for word in words}
        self.engine = _value_of(ENGINE, words)
        self.words: list[str] = []
        self.read: list[tuple[str, str]] = []
        self.left_out: list[str] = []

    def translation(self) -> Translation:
        while self.left:
            word = self.left.pop(0)
            if word == "--":
                self.words += [word, *self.left]
                break
            flag = word.partition("=")[0]
            is_other = flag.startswith("-") and flag not in self.known and flag.replace("_", "-") not in self.known
            if not (is_other and self._take(word)):
                self.words.append(word)
        return Translation(self.words, tuple(self.read), tuple(self.left_out))

    def _take(self, word: str) -> bool:
        """Whether the option at hand is another tool's that means the same, and was read."""
        typed, equals, value = word.partition("=")
        flag = typed.replace("_", "-")
        if (theirs := self._row("ignored", flag)) is not None:
            takes = 0 if equals else theirs
            while takes and self.left and not self._is_option(self.left[0]):
                self.left.pop(0)
                takes -= 1
            self.left_out.append(typed)
            return True
        if (ours := self._row("reads", flag)) is not None:
            return self._switch(typed, ours, value if equals else None)
        if (by_value := self._row("values", flag)) is not None:
            return self._by_value(typed, by_value, value if equals else None)
        if any(flag in tool.model for tool in self.mine):
            return self._model(typed, value if equals else None)
        if (by_field := self._row("fields", flag)) is not None:
            return self._by_field(typed, by_field, value if equals else None)
        same = self._same(flag)
        if same is None:
            return False
        given = value if equals else (self.left.pop(0) if self.left else None)
        as_read = _in_thousands(given) if any(flag in tool.thousands for tool in self.mine) else given
        changed = as_read != given
        self.words += [f"{same}={as_read}" if equals else same] + ([as_read] if not equals and as_read else [])
        self._note(f"{typed} {given}" if changed else typed, f"{same} {as_read}" if changed else same)
        return True

    def _same(self, flag: str) -> str | None:
        """The option of ours that takes the same value."""
        same = self._row("same", flag)
        if same is None and not USERS & self.flags:
            same = self._row("alone", flag)
        if same is not None:
            return str(same)
        for tool in self.mine:
            if flag in tool.of_engine and self.engine in ("", tool.engine):
                if not self.engine:
                    self.engine = tool.engine
                    self.words += [ENGINE, tool.engine]
                return tool.of_engine[flag]
        return None

    def _switch(self, typed: str, ours: str, value: str | None) -> bool:
        """A switch that may have true or false behind it, as programs of Hugging Face take it."""
        number = self._row("numbers", typed.replace("_", "-"))
        if number is not None and (given := value if value is not None else next(iter(self.left), "")).isdecimal():
            if value is None:
                self.left.pop(0)
            self.words += [*ours.split(), number, given]
            self._note(f"{typed} {given}", f"{ours} {number} {given}")
            return True
        if value is None and self.left and self.left[0].lower() in (*YES, *NO):
            value = self.left.pop(0)
        if value is not None and value.lower() not in (*YES, *NO):
            return False
        if value is not None and value.lower() in NO:
            self.left_out.append(typed)
            return True
        self.words += ours.split()
        self._note(typed, ours)
        return True

    def _by_value(self, typed: str, by_value: Mapping[str, str], value: str | None) -> bool:
        given = value if value is not None else (self.left[0] if self.left else "")
        ours = by_value.get(given) or by_value.get(given.lower())
        if ours is None:
            return False
        if value is None:
            self.left.pop(0)
        self.words += ours.split()
        self._note(f"{typed} {given}", ours)
        return True

    def _model(self, typed: str, value: str | None) -> bool:
        """The model by an option: it stands alone here."""
        name = value if value is not None else (self.left.pop(0) if self.left else "")
        self.words.append(name)
        self._note(f"{typed} {name}", name)
        return True

    def _by_field(self, typed: str, by_field: Mapping[str, str], value: str | None) -> bool:
        """An object whose fields are options of ours; one with other fields means more than they do."""
        given = value if value is not None else (self.left[0] if self.left else "")
        try:
            fields = json.decode(given, type=dict[str, str | int])
        except (ValidationError, DecodeError, UnicodeEncodeError):  # the last: bytes of no text
            return False
        if not fields or not fields.keys() <= by_field.keys():
            return False
        if value is None:
            self.left.pop(0)
        words = [word for name, each in fields.items() for word in (by_field[name], str(each))]
        self.words += words
        self._note(typed, " ".join(words))
        return True

    def _row(self, table: str, flag: str) -> Any:
        """What a table of any tool has for an option."""
        return next((row[flag] for tool in self.mine if flag in (row := getattr(tool, table))), None)

    def _is_option(self, word: str) -> bool:
        return word.startswith("-") and not _NEGATIVE.match(word)

    def _note(self, theirs: str, ours: str) -> None:
        if (theirs, ours) not in self.read:
            self.read.append((theirs, ours))


def _value_of(flag: str, words: Sequence[str]) -> str:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name == flag:
            return value if equals else following
    return ""


def _in_thousands(value: str | None) -> str | None:
    """A size whose small letters are powers of 1000, as digits: 8k is 8000, where K is 1024."""
    number = _NUMBER.fullmatch(value or "")
    return str(round(float(number[1]) * THOUSANDS[number[2]])) if number else value
