"""What lines of a log mean: a sign is a pattern with a tool, a phase and a cause, or with numbers alone."""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from tonnage.documents.interchange.diagnose import Cause, Phase
from tonnage.interchange.diagnose.log import LONGEST, Line, Log
from tonnage.interchange.diagnose.numbers import Number, amount, size

# How much a line says: the cause itself; that an allocation failed; what may have other causes too.
SAYS_CAUSE, FAILED, FOLLOWS = 3, 2, 1
FILLS = 0  # it says nothing alone, and more of a failure beside it
MOST = 60  # lines of a sign that are looked at, from the start of a log and from its end
WITH_UNIT = "size"  # the unit of a group whose text has its own
_BYTES = frozenset({WITH_UNIT, "bytes", "kib", "mib", "gib", "mb", "gb"})


class Sign(Struct, frozen=True, kw_only=True):
    """A line of a tool.

    hint: characters that every such line has; they are searched for before the pattern is tried
    pattern: its named groups are numbers; `units` says of what: name -> unit, `size` where the text has its own
    phase, cause: what it says of a failure, "" where it leaves that open
    strength: 0 of a line that tells numbers alone
    device: of which memory it tells
    """

    tool: str
    hint: str
    pattern: re.Pattern[str]
    units: Mapping[str, str] = {}
    phase: Phase | None = None
    cause: Cause | None = None
    strength: int = 0
    host: bool = False


class Hit(Struct, frozen=True, kw_only=True):
    """A line that a sign matches, with its numbers. `index`: of the line in the log."""

    sign: Sign
    index: int
    line: Line
    numbers: tuple[Number, ...]

    def value(self, name: str) -> float | None:
        return next((number.value for number in self.numbers if number.name == name), None)


def failure(
    tool: str,
    hint: str,
    pattern: str = "",
    *,
    phase: Phase | None = None,
    cause: Cause | None = None,
    strength: int = FAILED,
    host: bool = False,
    **units: str,
) -> Sign:
    """A line that says that memory ran out; without a pattern the hint is all of it."""
    return Sign(
        tool=tool,
        hint=hint,
        pattern=re.compile(pattern or re.escape(hint)),
        units=units,
        phase=phase,
        cause=cause,
        strength=strength,
        host=host,
    )


def fact(tool: str, hint: str, pattern: str, **units: str) -> Sign:
    """A line that has numbers. A group's name is the number's; `units` says its unit."""
    return Sign(tool=tool, hint=hint, pattern=re.compile(pattern), units=units)


def hits(log: Log, signs: tuple[Sign, ...]) -> Iterator[Hit]:
    """Every line that a sign matches."""
    for each in signs:
        if each.hint not in log.text:
            continue
        for index in log.with_literal(each.hint, MOST):
            line = log.at(index)
            found = each.pattern.search(line.text)
            if found is not None:
                yield Hit(sign=each, index=index, line=line, numbers=tuple(_numbers(found, each.units, line.number)))


def stated(text: str, sign: Sign) -> Iterator[Number]:
    """The numbers of every line of a text that a sign matches, without a look at who wrote it."""
    position = text.find(sign.hint)
    while position >= 0:
        start, end = max(position - LONGEST, 0), position + LONGEST
        start = max(text.rfind("\n", start, position), text.rfind("\r", start, position), start - 1) + 1
        end = min(
            (at for at in (text.find("\n", position, end), text.find("\r", position, end)) if at >= 0), default=end
        )
        found = sign.pattern.search(text[start:end])
        if found is not None:
            yield from _numbers(found, sign.units, 0)
        position = text.find(sign.hint, max(end, position + 1))


def _numbers(found: re.Match[str], units: Mapping[str, str], line: int) -> Iterator[Number]:
    for name, unit in units.items():
        text = found[name]
        if text is None:
            continue
        value = size(text) if unit == WITH_UNIT else amount(text.rstrip(",."), unit)
        if value is not None:
            yield Number(name, value, "bytes" if unit in _BYTES else unit, line)
