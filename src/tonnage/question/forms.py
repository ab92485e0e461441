"""Readers of values as people write them: sizes, numbers, times. Each takes the text and the option's name, for its
error.
"""

from collections.abc import Callable
from datetime import date
from math import isfinite
from typing import Any

from tonnage.kernel.errors import InvalidInput, OutOfRange, shown
from tonnage.kernel.message import Message, option_name
from tonnage.kernel.units import parse_length, parse_size
from tonnage.question import amounts

Reader = Callable[[str, str], Any]  # (what was written, the name of the option) -> the value


def word(text: str, what: str) -> str:
    """A name, which must not be empty."""
    if not text.strip():
        raise InvalidInput("{what} is empty: give it a value, or leave the option out.", what=option_name(what))
    return text.strip()


def as_written(text: str, what: str) -> str:
    """A text that is read elsewhere."""
    return text


LAST_PORT = 65535
FEWEST = "fewest"


def whole(text: str, what: str) -> int:
    """A plain whole number, or one with k, M, 万, 亿."""
    return parse_size(text, what)


def count(text: str, what: str) -> int:
    """A whole number that may be 0."""
    return 0 if text.strip() == "0" else parse_size(text, what)


def port(text: str, what: str) -> int:
    """Of this machine."""
    plain = text.strip()
    found = int(plain) if plain.isascii() and plain.isdecimal() and len(plain) < len(str(LAST_PORT)) + 1 else 0
    if not 1 <= found <= LAST_PORT:
        raise InvalidInput(
            "{what} must be a port from 1 to {last_port:,}, such as 8000. Got {text}.",
            what=option_name(what),
            last_port=LAST_PORT,
            text=shown(text),
        )
    return found


def number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput("{what} must be a number. Got {text}.", what=option_name(what), text=shown(text)) from None
    if not isfinite(value):
        raise InvalidInput("{name} must be a finite number. Got {value}.", name=option_name(what), value=shown(text))
    return value


def share(text: str, what: str) -> float:
    """Above 0, at most 1; a millionth is already less than anybody reaches."""
    value = number(text, what)
    if not 1e-6 <= value <= 1:
        raise InvalidInput("{what} must be from 0.000001 to 1. Got {text}.", what=option_name(what), text=text)
    return value


def day(text: str, what: str) -> date:
    """A day of the calendar, as 2026-11-22."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            "{what} must be a date such as 2026-11-22. Got {text}.", what=option_name(what), text=shown(text)
        ) from None


def ranged(read: Reader, span: str) -> Reader:
    """A reader whose errors state the range of the option's own check, not that of all numbers."""

    def within(text: str, what: str) -> Any:
        try:
            return read(text, what)
        except OutOfRange:
            raise InvalidInput(
                "{what} must be {span}. Got {text}.", what=option_name(what), span=span, text=shown(text)
            ) from None

    return within


def bounded(read: Reader, most: int) -> Reader:
    """A reader of 1 to `most`, of options that nothing behind it checks."""

    def within(text: str, what: str) -> Any:
        try:
            value = read(text, what)
        except OutOfRange:
            value = None
        if value is None or not 1 <= value <= most:
            raise InvalidInput(
                "{what} must be from 1 to {most:,}. Got {text}.",
                what=option_name(what),
                most=most,
                text=shown(text),
            )
        return value

    return within


# As estimate.plan.rule.check_size has it, and architectures._config: importing them would take longer than an answer.
SIZES = "from 1 to 1,099,511,627,776"
size, length = ranged(whole, SIZES), ranged(parse_length, SIZES)
width, depth = (ranged(whole, Message("a whole number from 1 to {most}", most=most)) for most in (17179869184, 20000))


def accelerators(text: str, what: str) -> int | str:
    """A number of accelerators, or `fewest`."""
    if text.strip().lower() == FEWEST:
        return FEWEST
    found = size(text, what)
    if found < 1:
        raise InvalidInput(
            "{what} must be a number of accelerators from 1, or {fewest}. Got {text}.",
            what=option_name(what),
            fewest=FEWEST,
            text=shown(text),
        )
    return int(found)


def parquet(text: str, what: str) -> str:
    """The name of a file of Parquet."""
    if not text.endswith(".parquet"):
        raise InvalidInput(
            "{what} takes a file that ends in .parquet. Got {text}.", what=option_name(what), text=shown(text)
        )
    return text


def _checked(check: Callable[[str, object], Any]) -> Reader:
    """Reads as `check` does, which states its own range."""
    return lambda text, what: check(what, word(text, what))


number_of, amount, usd = _checked(amounts.count), _checked(amounts.positive), _checked(amounts.money)
duration, rate = _checked(amounts.duration), _checked(amounts.rate)


def timed(text: str, what: str) -> str:
    """A time as it was typed, such as 500ms; a wrong one is refused here, where the option's name is known as typed."""
    duration(text, what)
    return text.strip()


def last_day(text: str, what: str) -> str:
    """A time as it was typed, or a day, which the estimate counts from today."""
    if not amounts.DATE.fullmatch(word(text, what)):
        amounts.deadline_seconds(text, None, what)
    return text.strip()
