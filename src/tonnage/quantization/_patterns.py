"""Regular expressions out of config files: compiled, unless one could take for ever on the name of a module."""

import re
import warnings

from tonnage.errors import InvalidInput, shown

LONGEST = 10_000  # characters
REPETITIONS = 6  # in a row: names are short, so that all ways to share one out among so few are soon tried

_LETTER = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)  # an escape or a set: one character of the name
_INNERMOST = re.compile(r"\(([^()]*)\)")
_REPEAT = re.compile(r"[*+]|\{\d*(?:,\d*)?\}")


def expression(text: str) -> re.Pattern[str]:
    """The expression; InvalidInput if it is none, or if what it repeats can itself match in several ways: (a+)+."""
    if len(text) > LONGEST:
        raise InvalidInput(f"quantization_config: a pattern of {len(text)} characters is too long: {shown(text)}.")
    if _takes_for_ever(text):
        raise InvalidInput(f"quantization_config: a pattern repeats too much to be tried: {shown(text)}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidInput(f"quantization_config: {shown(text)} is no regular expression: {error}.") from None


def _takes_for_ever(text: str) -> bool:
    """Groups are replaced from the innermost on, by as many repetitions as they hold, or V for other choices."""
    plain = _LETTER.sub("a", text)
    while (group := _INNERMOST.search(plain)) is not None:
        inner = group[1].removeprefix("?")
        repeats = _in_a_row(inner)
        varies = repeats or any(letter in inner for letter in "V|?")
        if repeats > REPETITIONS or (varies and _REPEAT.match(plain, group.end())):
            return True
        plain = plain[: group.start()] + ("a+" * repeats or ("V" if varies else "a")) + plain[group.end() :]
    return _in_a_row(plain) > REPETITIONS


def _in_a_row(text: str) -> int:
    """Repetitions of the alternative that has the most."""
    return max(sum(1 for _ in _REPEAT.finditer(part)) for part in text.split("|"))
