"""Amounts as people write them, checked: numbers, counts, times, rates, money, deadlines. Each takes a number too."""

import re
from collections.abc import Callable
from datetime import date
from math import isfinite

from tonnage.kernel.errors import InvalidInput, OutOfRange, shown
from tonnage.kernel.message import Message, option_name
from tonnage.kernel.units import DAY, parse_count, parse_link_rate, parse_number, parse_rate, parse_seconds, parse_usd

LARGEST = 10**18  # tokens, steps, USD, seconds: more than anybody will ever train, spend or wait for
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")


def deadline_seconds(text: float | str | None, today: date | None, name: str = "deadline") -> float | None:
    """Seconds that a deadline leaves: a time with its unit, or an ISO date, of which the whole day still counts."""
    if text is None:
        return None
    written = text.strip() if isinstance(text, str) else f"{text:g}"
    if DATE.fullmatch(written):
        return _until(written, today)
    is_other_date = re.fullmatch(r"\d+([./-])\d+\1\d+", written)
    if not is_other_date and re.fullmatch(r"[-+0-9.,_eE]+", written):
        raise InvalidInput(
            "{name} needs a unit, such as 30d or 2w, or is a date such as 2027-01-31. Got {said}.",
            name=option_name(name),
            said=shown(written),
        )
    if is_other_date or not re.match(r"[-+]?[0-9.]", written):
        raise InvalidInput(
            "{name} must be a time such as 30d, 2w or 12h, or the last day, such as 2027-01-31. Got {said}.",
            name=option_name(name),
            said=shown(written),
        )
    span = Message(
        "{name} must be more than 0, such as 30d or 2w, and at most {largest:.0e} s. Got {said}.",
        name=option_name(name),
        largest=LARGEST,
        said=shown(written),
    )
    try:
        seconds = parse_seconds(written, name)
    except OutOfRange:
        raise InvalidInput(span) from None
    if not 0 < seconds <= LARGEST:
        raise InvalidInput(span)
    return seconds


def _until(written: str, today: date | None) -> float:
    if today is None:
        raise TypeError("a deadline that is a date needs `today`")
    try:
        year, month, day = map(int, written.split("-"))
        last = date(year, month, day)
    except ValueError:
        raise InvalidInput(
            "{@deadline} is no day of the calendar; write it like {today}. Got {said}.",
            today=today,
            said=shown(written),
        ) from None
    if last < today:
        raise InvalidInput(
            "{@deadline} must not be in the past: today is {today}. Got {said}. Nearest: {today}, or "
            "a time such as 30d.",
            today=today,
            said=shown(written),
        )
    return float(((last - today).days + 1) * DAY)


def positive(
    name: str, value: object, parse: Callable[[str, str], float] = parse_number, unit: str = ""
) -> float | None:
    """A number, or a text that `parse` reads, from above 0 to LARGEST: one range is said, whichever way it is
    missed.
    """
    if value is None:
        return None
    span = Message(
        "{name} must be more than 0 and at most {largest:.0e}{unit}. Got {value}.",
        name=option_name(name),
        largest=LARGEST,
        unit=unit,
        value=shown(value),
    )
    try:
        read = parse(value, name) if isinstance(value, str) else _finite(name, value)
    except OutOfRange:
        raise InvalidInput(span) from None
    if not 0 < read <= LARGEST:
        raise InvalidInput(span)
    return read


def count(name: str, value: object) -> int | None:
    """A whole number of things from 1 on."""
    number = positive(name, value, parse_count)
    if number is not None and number != int(number):
        raise InvalidInput("{what} must be a whole number. Got {text}.", what=option_name(name), text=shown(value))
    return None if number is None else int(number)


def duration(name: str, value: object) -> float | None:
    """A time of the options in seconds."""
    return positive(name, value, parse_seconds, " s")


MOST_BARE = {"ttft": 100.0, "tpot": 10.0}  # seconds of a limit on waiting that are believed without a unit


def wait(name: str, value: object) -> float | None:
    """A limit on TTFT or TPOT in seconds. A large number without a unit is refused: benchmarks take milliseconds."""
    seconds = duration(name, value)
    bare = isinstance(value, int | float) or (isinstance(value, str) and re.fullmatch(r"[\d.,_]+", value.strip()))
    if seconds is not None and bare and seconds >= MOST_BARE[name]:
        raise InvalidInput(
            "{name} needs a unit: write {number}ms or {number}s. Got {value}.",
            name=option_name(name),
            number=f"{seconds:g}",
            value=shown(value),
        )
    return seconds


def rate(name: str, value: object) -> float | None:
    """Bytes a second."""
    return positive(name, value, parse_rate)


def link_rate(name: str, value: object) -> float | None:
    """Bytes a second of a link, also written in bits."""
    return positive(name, value, parse_link_rate)


def money(name: str, value: object) -> float | None:
    """US dollars."""
    return positive(name, value, parse_usd)


def _finite(name: str, value: object) -> float:
    """The value, unless it is no number at all: a list, a bool, NaN, infinity."""
    if not isinstance(value, int | float):
        raise InvalidInput(
            "{name} must be a number, or a text with one. Got {value}.", name=option_name(name), value=shown(value)
        )
    if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
        raise InvalidInput("{name} must be a finite number. Got {value}.", name=option_name(name), value=shown(value))
    return value
