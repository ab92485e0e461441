"""Regular expressions from config files: compiled, unless matching one could take exponential time."""

import re
import warnings

from tonnage.kernel.errors import InvalidInput, shown

MAX_LENGTH = 10_000  # characters
MAX_OPEN = 4  # in a row, of what almost any character may match: .* and \w+, but not \d+ and a*
MAX_REPEATS = 20  # in a row, of any kind

_ESCAPED = re.compile(r"\\(?:([wSDW])|.)", re.DOTALL)
_SET = re.compile(r"\[\^?\]?[^\]]*\]")
_DIGITS = re.compile(r"\[[0-9n-]+\]")
_INNERMOST = re.compile(r"\(([^()]*)\)")
_OPEN = re.compile(r"\.(?:[*+]|\{\d*(?:,\d*)?\})")
_REPEAT = re.compile(r"[*+]|\{\d*(?:,\d*)?\}")


def expression(text: str) -> re.Pattern[str]:
    """Compile the expression; InvalidInput if it is invalid, or if what it repeats can match in several ways: (a+)+."""
    if len(text) > MAX_LENGTH:
        raise InvalidInput(
            "quantization_config: a pattern of {count} characters is too long: {text}.",
            count=len(text),
            text=shown(text),
        )
    if _takes_for_ever(text):
        raise InvalidInput("quantization_config: a pattern repeats too much to be tried: {text}.", text=shown(text))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidInput(
            "quantization_config: {text} is no regular expression: {error}.", text=shown(text), error=error
        ) from None


def _takes_for_ever(text: str) -> bool:
    """Whether it backtracks: replace groups from the innermost on by their repetitions, or V for other choices."""
    plain = _ESCAPED.sub(lambda match: "." if match[1] else "n", text)
    plain = _SET.sub(lambda match: "n" if _DIGITS.fullmatch(match[0]) else ".", plain)
    while (group := _INNERMOST.search(plain)) is not None:
        inner = group[1].removeprefix("?")
        wide, all_ = _in_a_row(inner)
        varies = all_ or any(letter in inner for letter in "V|?")
        if _too_many(wide, all_) or (varies and _REPEAT.match(plain, group.end())):
            return True
        shape = ".+" * wide + "n+" * (all_ - wide) or ("V" if varies else "n")
        plain = plain[: group.start()] + shape + plain[group.end() :]
    return _too_many(*_in_a_row(plain))


def _too_many(wide: int, repeats: int) -> bool:
    return wide > MAX_OPEN or repeats > MAX_REPEATS


def _in_a_row(text: str) -> tuple[int, int]:
    """Repetitions of the alternatives that have the most: (open ones, all)."""
    parts = text.split("|")
    return max(len(_OPEN.findall(part)) for part in parts), max(len(_REPEAT.findall(part)) for part in parts)
