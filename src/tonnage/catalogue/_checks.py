"""Checks of a catalogue's facts beyond their type: a plausible size, a source, a date."""

import datetime
import re
from collections.abc import Iterable, Mapping
from functools import cache

from tonnage.catalogue.toml_files import Source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, listed

_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")

# The largest plausible value; a larger one has the wrong unit. Generous: ten times what is on the market.
LIMITS = {
    "gib": 65_536.0,
    "mib": 65_536.0 * 1024,
    "gb_per_s": 1_000_000.0,
    "tflops": 1_000_000.0,
    "watts": 1_000_000.0,
    "usd": 100_000_000.0,
    "fraction": 1.0,
    "grams": 5_000.0,
}


def within(value: float | None, unit: str, where: str) -> None:
    """Check for a positive number of this unit, not above its limit; None passes: nobody published the fact."""
    if value is not None and not 0 < value <= LIMITS[unit]:
        raise InvalidInput(
            "{where} must be above 0 and at most {limits:,.0f}. Got {value}.",
            where=where,
            limits=LIMITS[unit],
            value=shown(value),
        )


def one_of(value: str, known: Iterable[str], where: str) -> None:
    """Check for one of the known names."""
    names = list(known)
    if value not in names:
        raise InvalidInput(
            "{where} must be one of {names}. Got {value}.", where=where, names=listed(names), value=shown(value)
        )


def date(text: str, where: str) -> None:
    """Check for a day as YYYY-MM-DD."""
    if not _DATE.fullmatch(text):
        raise InvalidInput("{where} must be a date such as 2026-11-21. Got {text}.", where=where, text=shown(text))


def sourced(facts: Iterable[str], sources: Mapping[str, Source], where: str) -> None:
    """Check that every fact has a source, its own or that of its table, and every source a text and a date."""
    for path, fact in sources.items():
        if not _DATE.fullmatch(fact.as_of):
            date(fact.as_of, Message("{where}: sources.{path}.as_of", where=where, path=path))
        if not fact.source.strip():
            raise InvalidInput("{where}: sources.{path}.source is empty.", where=where, path=path)
    for fact_path in facts:
        parts = fact_path.split(".")
        if not any(".".join(parts[:end]) in sources for end in range(len(parts), 0, -1)):
            raise InvalidInput(
                "{where}: {fact_path} has no source. Add {parts} = {{ source = ..., {@as_of} = ... }} to [sources].",
                where=where,
                fact_path=fact_path,
                parts=parts[0],
            )


@cache
def is_calendar_day(text: str) -> bool:
    """Whether a text is a day as YYYY-MM-DD that is in the calendar; cached, since price lists repeat few days."""
    try:
        return bool(_DATE.fullmatch(text) and datetime.date.fromisoformat(text))
    except ValueError:
        return False


def calendar_day(text: str, where: str) -> None:
    """Check for a day as YYYY-MM-DD that is in the calendar."""
    if is_calendar_day(text):
        return
    date(text, where)
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            "{where} must be a day of the calendar. Got {text}.", where=where, text=shown(text)
        ) from None
