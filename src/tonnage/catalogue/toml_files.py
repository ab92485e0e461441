"""Reads facts from TOML, one file per entry, with sources and dates. This is the only code that reads them.

A name is looked up without opening the other files: by file name, else by a scan for the quoted alias.
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import joined
from tonnage.kernel.reach import called, is_file, why
from tonnage.kernel.registry import unknown
from tonnage.user_files import read_text
from tonnage.user_files.toml_text import LARGEST, load, parse

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
    return _aliases(kind).get(wanted)


def _shipped(kind: str) -> list[Path]:
    return sorted((HERE / kind).glob("*.toml"))


@cache
def _aliases(kind: str) -> dict[str, Path]:
    """Alias -> shipped file."""
    files: dict[str, Path] = {}
    for path in _shipped(kind):
        for alias in _listed(path):
            files.setdefault(alias, path)
    return files


def _listed(path: Path) -> list[str]:
    """The aliases of a file, from a scan for the one line that holds them: ten times faster than parsing all files."""
    try:
        text = read_text(path, LARGEST)
        start = text.find("\naliases = [")
        line = text[start + 1 : text.index("]", start) + 1] if start >= 0 else "aliases = []"
        return [key(alias) for alias in parse(line, str(path))["aliases"]]
    except (ValueError, AttributeError, TypeError):
        return []  # a broken file is reported when it is read by its own name


def aliases(kind: str) -> dict[str, str]:
    """Alias -> name of the file that lists it."""
    return {alias: path.stem for alias, path in _aliases(kind).items()}


def missing(kind: str, word: str, name: str) -> Exception:
    """The error for a name that the catalogue does not have."""
    return unknown(word, name, names(kind), _aliases(kind))


def read(path: Path, form: type[T]) -> T:
    """A TOML file as a `form`; a key that the form does not have, or a value of another type, is an InvalidInput.

    A file is read once, and again when it has changed.
    """
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise InvalidInput("cannot read {called}: {why}.", called=called(path), why=why(error)) from None
    kind: Any = form
    content: T = _read(path, changed, kind)
    return content


@lru_cache(maxsize=1024)
def _read(path: Path, changed: int, form: Any) -> Any:
    return convert(toml(path), form, called(path))


def toml(path: Path) -> dict[str, Any]:
    """The keys and tables of a file, unchecked."""
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
