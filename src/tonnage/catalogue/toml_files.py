"""Reads facts from TOML, one file per entry, with sources and dates. This is the only code that reads them; what was
prepared of a shipped file is read in its place (`kernel.prepared`).

A name is looked up without opening the other files: by file name, else among the aliases of all of them.
"""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tonnage.kernel import prepared
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.reach import called, is_file, why
from tonnage.kernel.registry import unknown

HERE = Path(__file__).parent
T = TypeVar("T")


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The source of a fact, and the day it was read (YYYY-MM-DD)."""

    source: str
    as_of: str


def names(kind: str) -> list[str]:
    """Names of a catalogue's files and of the user's own, without their ending."""
    return sorted({path.stem for path in [*_shipped(kind), *user_files(kind)]})


def key(name: str) -> str:
    """The form of a name for comparison: case, spaces and underscores do not matter."""
    return "-".join(name.lower().replace("_", " ").split())


def find(kind: str, name: str) -> Path | None:
    """The file of the entry with this name or alias; the user's own files come first."""
    wanted = key(name)
    for path in user_files(kind):
        if wanted == key(path.stem) or wanted in _listed(path):
            return path
    plain = not any(character in wanted for character in "/\\\0")
    if wanted and plain and is_file(path := HERE / kind / f"{wanted}.toml"):
        return path
    named = _aliases(kind).get(wanted)
    return HERE / kind / f"{named}.toml" if named else None


def _shipped(kind: str) -> tuple[Path, ...]:
    return _files(HERE / kind)


@cache
def _files(folder: Path) -> tuple[Path, ...]:
    """The shipped files of a folder, which stay as they are."""
    return tuple(sorted(folder.glob("*.toml")))


@cache
def _aliases(kind: str) -> dict[str, str]:
    """Alias -> name of the shipped file that lists it."""
    files: dict[str, str] = {}
    known = prepared.aliases(str(HERE / kind))
    if known is not None:
        for alias, name in known.items():
            files.setdefault(key(alias), name)
        return files
    for path in _shipped(kind):
        for alias in _listed(path):
            files.setdefault(alias, path.stem)
    return files


def _listed(path: Path) -> list[str]:
    """The aliases of a file, from a scan for the one line that holds them: ten times faster than parsing all files."""
    from tonnage.user_files import read_text
    from tonnage.user_files.toml_text import LARGEST, parse

    try:
        text = read_text(path, LARGEST)
        start = text.find("\naliases = [")
        line = text[start + 1 : text.index("]", start) + 1] if start >= 0 else "aliases = []"
        return [key(alias) for alias in parse(line, str(path))["aliases"]]
    except (ValueError, AttributeError, TypeError):
        return []  # a broken file is reported when it is read by its own name


def aliases(kind: str) -> dict[str, str]:
    """Alias -> name of the file that lists it."""
    return dict(_aliases(kind))


def missing(kind: str, word: str, name: str) -> Exception:
    """The error for a name that the catalogue does not have."""
    return unknown(word, name, names(kind), _aliases(kind))


def read(path: Path, form: type[T]) -> T:
    """A TOML file as a `form`; a key that the form does not have, or a value of another type, is an InvalidInput.

    A file is read once, and again when it has changed.
    """
    kind: Any = form
    content: T = _read(path, changed(path), kind)
    return content


def changed(path: Path) -> int:
    """When a file was changed last, in nanoseconds; InvalidInput where it cannot be read."""
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise InvalidInput("cannot read {called}: {why}.", called=called(path), why=why(error)) from None


@lru_cache(maxsize=1024)
def _read(path: Path, changed: int, form: Any) -> Any:
    said = prepared.content(str(path))
    if said is not None:
        try:
            return msgspec.json.decode(said, type=form)
        except (msgspec.ValidationError, RecursionError):
            pass  # its source says where
    return convert(toml(path), form, called(path))


def toml(path: Path) -> dict[str, Any]:
    """The keys and tables of a file, unchecked."""
    from tonnage.user_files.toml_text import load

    return load(path)


def convert(fields: Any, form: type[T], where: str) -> T:
    """Convert fields to a `form`; errors name the path inside the file."""
    try:
        return msgspec.convert(fields, form)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(joined(": ", (where, error))) from None


def user_files(kind: str) -> Iterator[Path]:
    """The user's own files of this kind: <config directory>/<kind>/*.toml."""
    yield from sorted((config_directory() / kind).glob("*.toml"))


def config_directory() -> Path:
    """$TONNAGE_CONFIG, which must be a directory if set, else $XDG_CONFIG_HOME/tonnage, else ~/.config/tonnage."""
    import os

    if configured := os.environ.get("TONNAGE_CONFIG"):
        if not os.path.isdir(configured):  # noqa: PTH112 - unlike Path, it never raises
            raise InvalidInput("TONNAGE_CONFIG must be a directory. Got {given}.", given=shown(configured, 4096))
        return Path(configured)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - without a home too
    return Path(base) / "tonnage"


# ---- Checks of a catalogue's facts beyond their type: a plausible size, a source, a date.

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
