"""YAML within bounds, as plain data: lists, mappings, texts, numbers, true, false and null.

Values are built here from the events of PyYAML's parser, so that no tag, constructor or recursion of PyYAML takes part.
A plain scalar is read as in YAML 1.1, with three exceptions: dates and numbers in base 60 stay texts, and a number
larger than any float is infinity, which the reader of the field refuses.
"""

import re
from collections.abc import Hashable, Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, joined
from tonnage.kernel.reach import called
from tonnage.user_files import read_text

LARGEST = 64_000_000  # bytes of a file; 10,000 rows of measurements take about 10 MB
LARGEST_WITHOUT_LIBYAML = 8_000_000  # the parser in Python reads a tenth as fast
MAX_DEPTH = 32
MOST_VALUES = 1_000_000  # with every alias written out
_MAX_DIGITS = 308  # of a whole number that fits a float
_TOO_DEEP = re.compile(
    "exceeded maximum nesting depth"
)  # libyaml scans ahead of its events, to a depth of 1,000 (PyYAML 6.0.4)
_MERGE = object()
_WORDS = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}


class _OpenCollection:
    """A list or a mapping that is being read. `start`: values before it; `merged`: mappings of its `<<`, None before
    it.

    Not a msgspec struct: benchmarks/gpu/ reads YAML with nothing but torch installed.
    """

    __slots__ = ("anchor", "has_key", "key", "merged", "start", "value")

    def __init__(self, value: Any, anchor: str | None, start: int):
        self.value, self.anchor, self.start = value, anchor, start
        self.key: Any = None
        self.has_key = False
        self.merged: list[Any] | None = None


def load(path: Path, largest: int = LARGEST) -> Any:
    """The content of a file; InvalidInput where it cannot be read, is no YAML, or exceeds the bounds."""
    return parse(read_text(path, min(largest, _largest())), called(path))


def parse(text: str, where: str) -> Any:
    """The value of a text; errors name `where` and the row of the outermost list."""
    import yaml

    builder = _Builder(where)
    try:
        return builder.build(yaml.parse(text, Loader=_loader()))
    except InvalidInput:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if _TOO_DEEP.fullmatch(getattr(error, "problem", None) or ""):
            raise builder.too_deep() from None
        raise _not_yaml(where, error) from None


def _not_yaml(where: str, error: Exception) -> InvalidInput:
    """The error with the line and the column at which YAML ends, as far as the parser says them."""
    place, begins = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or "")[:300]
    if place is None or not problem:
        return InvalidInput("{where} is not YAML: {error}", where=where, error=" ".join(str(error).split())[:300])
    text = Message(
        "{where} is not YAML: line {line}, column {column}: {problem}",
        where=where,
        line=place.line + 1,
        column=place.column + 1,
        problem=problem,
    )
    context = str(getattr(error, "context", None) or "")[:300]
    if begins is None or not context or begins.line == place.line:
        return InvalidInput(joined("", (text, ".")))
    return InvalidInput(
        Message("{text}, {context} that begins in line {line}.", text=text, context=context, line=begins.line + 1)
    )


def line_of(text: str, word: str) -> int:
    """The line of the first scalar of a YAML text that is this word, else of the first that ends in it, counted from
    1; 0 where there is none.
    """
    import yaml

    ends = 0
    try:
        for event in yaml.parse(text, Loader=_loader()):
            if not isinstance(event, yaml.ScalarEvent) or event.start_mark is None:
                continue
            mark = event.start_mark
            line = int(mark.line) + 1 if mark is not None else 0
            if event.value == word:
                return line
            if event.value.endswith(word):
                ends = ends or line
    except (yaml.YAMLError, RecursionError, ValueError):
        return ends
    return ends


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _largest() -> int:
    import yaml

    return LARGEST if hasattr(yaml, "CSafeLoader") else LARGEST_WITHOUT_LIBYAML


class _Builder:
    """Builds values from events. `count`: values so far, an alias counted as its whole value; `row`: the item of the
    outermost list.
    """

    def __init__(self, where: str):
        import yaml

        self.where = where
        self.resolvers = yaml.SafeLoader.yaml_implicit_resolvers
        self.open: list[_OpenCollection] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.count = self.row = self.documents = 0
        self.root: Any = None

    def build(self, events: Iterator[Any]) -> Any:
        from yaml import events as e

        for event in events:
            if isinstance(event, e.ScalarEvent):
                self._check_tag(event)
                self._add(event.anchor, self._scalar(event))
            elif isinstance(event, e.CollectionStartEvent):
                self._check_tag(event)
                self._start([] if isinstance(event, e.SequenceStartEvent) else {}, event.anchor)
            elif isinstance(event, e.CollectionEndEvent):
                self._end()
            elif isinstance(event, e.AliasEvent):
                self._alias(str(event.anchor))
            elif isinstance(event, e.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    raise InvalidInput(
                        "{where} holds several YAML documents; one is read. Take out the line `---`.",
                        where=self.where,
                    )
        return self.root

    def too_deep(self) -> InvalidInput:
        """The error of a text that is nested deeper than it may be, at the row that was being read."""
        return self._error(Message("it is nested more than {deepest} deep", deepest=MAX_DEPTH))

    # ---- events ----

    def _check_tag(self, event: Any) -> None:
        if event.tag is not None:
            self._count(1)  # so that the error names its row
            raise self._error(
                Message("YAML tags are not read: leave out {short_tag}", short_tag=shown(_short_tag(event.tag)))
            )

    def _alias(self, anchor: str) -> None:
        if any(collection.anchor == anchor for collection in self.open):
            raise self._error(Message("{anchor} refers to itself", anchor=shown(anchor)))
        if anchor not in self.anchors:
            raise self._error(Message("no anchor is called {anchor}", anchor=shown(anchor)))
        value, size = self.anchors[anchor]
        self._add(None, value, size)

    def _start(self, value: Any, anchor: str | None) -> None:
        self._count(1)
        if len(self.open) == MAX_DEPTH:
            raise self.too_deep()
        self.open.append(_OpenCollection(value, anchor, self.count))

    def _end(self) -> None:
        closed = self.open.pop()
        value, size = closed.value, self.count - closed.start + 1
        if closed.merged is not None:
            own, value = value, {}
            for mapping in (
                *reversed(closed.merged),
                own,
            ):  # the first of several wins, and keys beside `<<` win over all
                value.update(mapping)
        if closed.anchor:
            self.anchors[closed.anchor] = (value, size)
        self._put(value)

    def _add(self, anchor: str | None, value: Any, size: int = 1) -> None:
        self._count(size)
        if anchor:
            self.anchors[anchor] = (value, size)
        self._put(value)

    def _count(self, size: int) -> None:
        self.count += size
        outer = self.open[0] if self.open else None
        self.row += len(self.open) == 1 and outer is not None and isinstance(outer.value, list)
        if self.count > MOST_VALUES:
            raise self._error(
                Message(
                    "the file holds more than {most_values:,} values, with its aliases unfolded",
                    most_values=MOST_VALUES,
                )
            )

    def _put(self, value: Any) -> None:
        """Put a value into the open collection: as an item, a key, or the value of a key."""
        if not self.open:
            self.root = value
            return
        parent = self.open[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif not parent.has_key:
            parent.key, parent.has_key = self._key(value, parent), True
        else:
            if parent.key is _MERGE:
                parent.merged = self._merged(value)
            else:
                parent.value[parent.key] = value
            parent.has_key = False

    # ---- values ----

    def _key(self, value: Any, parent: _OpenCollection) -> Any:
        if not isinstance(value, Hashable):
            raise self._error("a key of a mapping must be a text or a number")
        if value in parent.value or (value is _MERGE and parent.merged is not None):
            raise self._error(
                Message("{value} is there twice in one mapping", value=shown("<<" if value is _MERGE else value))
            )
        return value

    def _merged(self, value: Any) -> list[Any]:
        listed = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in listed):
            raise self._error(Message("<< takes a mapping, or a list of them. Got {value}", value=shown(value)))
        return listed

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if not event.implicit[0]:  # quoted, or a block
            return text
        for tag, pattern in self.resolvers.get(text[:1], ()):
            if pattern.match(text):
                kind = tag.rpartition(":")[2]
                if kind == "merge":
                    is_key = bool(self.open) and isinstance(self.open[-1].value, dict) and not self.open[-1].has_key
                    return _MERGE if is_key else text
                return _resolved(kind, text)
        return text

    def _error(self, why: str) -> InvalidInput:
        place = Message("{where}, row {row}", where=self.where, row=self.row) if self.row else self.where
        return InvalidInput("{place}: {why}.", place=place, why=why)


def _resolved(kind: str, text: str) -> Any:
    """The value of a plain scalar of this kind."""
    if kind == "null":
        return None
    if kind == "bool":
        return _WORDS[text.lower()]
    if kind in ("int", "float") and ":" not in text:
        try:
            return _whole(text) if kind == "int" else _real(text)
        except ValueError:  # 0x_
            return text
    return text


def _whole(text: str) -> int | float:
    digits = text.replace("_", "")
    sign, digits = (-1 if digits.startswith("-") else 1), digits.lstrip("+-")
    if len(digits) > _MAX_DIGITS:
        return sign * inf
    if digits.startswith(("0b", "0x")):
        return sign * int(digits, 0)
    return sign * int(digits, 8 if digits.startswith("0") else 10)


def _real(text: str) -> float:
    digits = text.replace("_", "").lower()
    if digits.endswith(".inf"):
        return -inf if digits.startswith("-") else inf
    return nan if digits == ".nan" else float(digits)


def _short_tag(tag: str) -> str:
    return f"!!{tag.removeprefix('tag:yaml.org,2002:')}" if tag.startswith("tag:yaml.org,2002:") else tag
