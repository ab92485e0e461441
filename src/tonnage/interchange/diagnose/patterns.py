"""What lines of a log mean: patterns with a tool, a phase and a cause, or with numbers alone."""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from tonnage.documents.interchange.diagnose import Cause, Phase
from tonnage.interchange.diagnose.log import LONGEST, Line, Log
from tonnage.interchange.diagnose.numbers import Number, amount, size

# How much a line says: the cause itself; that an allocation failed; what may have other causes too.
SAYS_CAUSE, FAILED, FOLLOWS = 3, 2, 1
FILLS = 0  # it says nothing alone, and more of a failure beside it
MOST = 60  # lines of a pattern that are looked at, from the start of a log and from its end
WITH_UNIT = "size"  # the unit of a group whose text has its own
_BYTES = frozenset({WITH_UNIT, "bytes", "kib", "mib", "gib", "mb", "gb"})


class LinePattern(Struct, frozen=True, kw_only=True):
    """A line of a tool.

    hint: characters that every such line has; they are searched for before the pattern is tried
    regex: its named groups are numbers; `units` says of what: name -> unit, `size` where the text has its own
    phase, cause: what it says of a failure, "" where it leaves that open
    strength: 0 of a line that tells numbers alone
    device: of which memory it tells
    """

    tool: str
    hint: str
    regex: re.Pattern[str]
    units: Mapping[str, str] = {}
    phase: Phase | None = None
    cause: Cause | None = None
    strength: int = 0
    host: bool = False


class Hit(Struct, frozen=True, kw_only=True):
    """A line that a pattern matches, with its numbers. `index`: of the line in the log."""

    pattern: LinePattern
    index: int
    line: Line
    numbers: tuple[Number, ...]


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
) -> LinePattern:
    """A line that says that memory ran out; without a pattern the hint is all of it."""
    return LinePattern(
        tool=tool,
        hint=hint,
        regex=re.compile(pattern or re.escape(hint)),
        units=units,
        phase=phase,
        cause=cause,
        strength=strength,
        host=host,
    )


def fact(tool: str, hint: str, pattern: str, **units: str) -> LinePattern:
    """A line that has numbers. A group's name is the number's; `units` says its unit."""
    return LinePattern(tool=tool, hint=hint, regex=re.compile(pattern), units=units)


def hits(log: Log, patterns: tuple[LinePattern, ...]) -> Iterator[Hit]:
    """Every line that a pattern matches."""
    for line_pattern in patterns:
        if line_pattern.hint not in log.text:
            continue
        for index in log.with_literal(line_pattern.hint, MOST):
            line = log.at(index)
            match = line_pattern.regex.search(line.text)
            if match is not None:
                numbers = tuple(_numbers(match, line_pattern.units, line.number))
                yield Hit(pattern=line_pattern, index=index, line=line, numbers=numbers)


def stated(text: str, line_pattern: LinePattern) -> Iterator[Number]:
    """The numbers of every line of a text that a pattern matches, without a look at who wrote it."""
    position = text.find(line_pattern.hint)
    while position >= 0:
        start, end = max(position - LONGEST, 0), position + LONGEST
        start = max(text.rfind("\n", start, position), text.rfind("\r", start, position), start - 1) + 1
        end = min(
            (at for at in (text.find("\n", position, end), text.find("\r", position, end)) if at >= 0), default=end
        )
        found = line_pattern.regex.search(text[start:end])
        if found is not None:
            yield from _numbers(found, line_pattern.units, 0)
        position = text.find(line_pattern.hint, max(end, position + 1))


def _numbers(match: re.Match[str], units: Mapping[str, str], line: int) -> Iterator[Number]:
    for name, unit in units.items():
        text = match[name]
        if text is None:
            continue
        value = size(text) if unit == WITH_UNIT else amount(text.rstrip(",."), unit)
        if value is not None:
            yield Number(name, value, "bytes" if unit in _BYTES else unit, line)
