"""A text for people as data: a template in English with named values. It is its English text, and carries what it was
made of, so that a face can put it into another language.

    >>> needs = Message("needs {size} of {usable}", size="8 GiB", usable="6 GiB")
    >>> needs, needs.template
    ('needs 8 GiB of 6 GiB', 'needs {size} of {usable}')

A value may be a Message itself. What is put together of several texts (`+`, `joined`, `listed`) is a Series of them.

A template says the name of an option in a place of its own, `{@lora_rank}` or `{--lora-rank}`, which needs no value:
the text has `lora_rank` or `--lora-rank` there, and a face writes its own way to name an option instead (`spelled`).

    >>> Message("{@lora_rank} must be at least {least}.", least=1)
    'lora_rank must be at least 1.'
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

_OPTION = re.compile(r"(?:--)?[a-z][a-z0-9_-]*")
AND, OR = "and", "or"  # the word before the last item of a list


class _WithOptions(dict[str, Any]):
    """Values of a template, and names of options in places of their own."""

    def __missing__(self, place: str) -> str:
        if not place.startswith(("@", "--")):
            raise KeyError(place)
        return place.removeprefix("@")


class Message(str):
    """The English text of a template and its values."""

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> Self:
        named = "{@" in template or "{--" in template
        message = str.__new__(cls, template.format_map(_WithOptions(values)) if named else template.format(**values))
        message.template, message.values = template, values
        return message

    def __str__(self) -> str:
        """Itself: the text of an error, `str(error)`, keeps its data."""
        return self

    def __add__(self, other: str) -> "Message":
        return Series("", (self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> "Message":
        return Series("", (other, self)) if isinstance(other, str) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return _message, (self.template, dict(self.values))

    def __copy__(self) -> "Message":
        return self

    def __deepcopy__(self, _memo: object) -> "Message":
        return self


NO_VALUES: Mapping[str, Any] = {}  # of every series: a document has some hundred


class Series(Message):
    """Texts one behind the other, with a separator between them; the last one behind a word, if there is one.

    >>> Series(", ", ["a", "b", "c"], OR)
    'a, b or c'
    """

    __slots__ = ("items", "last", "separator")
    separator: str
    items: tuple[str, ...]
    last: str

    def __new__(cls, separator: str, items: Iterable[object], last: str = "") -> Self:
        parts = tuple([item if isinstance(item, str) else str(item) for item in items])
        text = separator.join(parts)
        if last and len(parts) > 1:
            text = f"{separator.join(parts[:-1])} {last} {parts[-1]}"
        series = str.__new__(cls, text)
        series.template, series.values = text, NO_VALUES
        series.separator, series.items, series.last = separator, parts, last
        return series

    def __reduce__(self) -> tuple[Any, ...]:
        return Series, (self.separator, self.items, self.last)


class Quantity(Message):
    """A number of things. Its template has their plural, also of one.

    >>> Quantity("1", "requests", "1 request").template
    '{n} requests'
    """

    __slots__ = ()

    def __new__(cls, number: str, things: str, text: str) -> Self:
        quantity = str.__new__(cls, text)
        quantity.template, quantity.values = f"{{n}} {things}", {"n": number}
        return quantity

    def __reduce__(self) -> tuple[Any, ...]:
        return Quantity, (self.values["n"], self.template.removeprefix("{n} "), plain(self))


def joined(separator: str, texts: Iterable[object]) -> Series:
    """Texts with a separator between them, each with its data: "; " between clauses, " " between sentences."""
    return Series(separator, texts)


def listed(names: Iterable[object], last: str = "") -> Series:
    """Names with commas, and before the last one AND or OR.

    >>> listed(["a", "b"], AND)
    'a and b'
    """
    return Series(", ", names, last)


def option_name(name: str) -> str:
    """The name of an option as a text of its own, which a face spells; what can be none stays as it is.

    >>> option_name("lora_rank").template
    '{@lora_rank}'
    """
    return Message(f"{{@{name}}}") if _OPTION.fullmatch(name) else name


def spelled(text: object, spell: Callable[[str], str]) -> str:
    """The text with each option named as a face names it. `spell` is given `lora_rank` or `--lora-rank`, as the text
    has it.

    >>> spelled(Message("{@lora_rank} must be {what}.", what="1"), lambda name: name.upper())
    'LORA_RANK must be 1.'
    """
    text = text if isinstance(text, str) else str(text)
    if isinstance(text, Series):
        return Series(text.separator, (spelled(item, spell) for item in text.items), text.last)
    if not isinstance(text, Message) or isinstance(text, Quantity):
        return text
    values = {
        name: spelled(value, spell) if isinstance(value, Message | BaseException) else value
        for name, value in text.values.items()
    }
    if "{@" in text.template or "{--" in text.template:
        from string import Formatter

        places = {place for _, place, _, _ in Formatter().parse(text.template) if place and place[0] in "@-"}
        values |= {place: spell(place.removeprefix("@")) for place in places}
    return Message(text.template, **values)


def renamed(text: object, place: str, name: str, shown: str) -> str:
    """The text with another name in the places called so, where this one stood.

    >>> renamed(Message("runtime {runtime} has no {what}.", runtime="a", what="a"), "runtime", "a", "b")
    'runtime b has no a.'
    """
    text = text if isinstance(text, str) else str(text)
    if isinstance(text, Series):
        return Series(text.separator, (renamed(item, place, name, shown) for item in text.items), text.last)
    if not isinstance(text, Message) or isinstance(text, Quantity):
        return text
    values = {
        key: shown
        if key == place and value == name
        else renamed(value, place, name, shown)
        if isinstance(value, Message | BaseException)
        else value
        for key, value in text.values.items()
    }
    return Message(text.template, **values)


def plain(text: str) -> str:
    """The English text alone."""
    return str.__str__(text)


def _message(template: str, values: Mapping[str, Any]) -> Message:
    return Message(template, **values)
