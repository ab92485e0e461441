"""Electric grids: catalogue/grids/*.toml -> Grid, the emissions of a kilowatt-hour. The user's own come first."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.catalogue import toml_files
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message, listed


class Grid(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Emissions of a kilowatt-hour, in grams of CO2 equivalent: the mean of `year`."""

    name: str
    grams_co2e_per_kwh: float
    year: int
    source: str
    as_of: str
    aliases: list[str] = []
    note: str = ""


class GridFile(Struct, forbid_unknown_fields=True):
    """The form of a file; docs/catalogue.md explains each key."""

    grid: list[Grid] = []


@cache
def grids() -> tuple[Grid, ...]:
    """All grids, the user's own first."""
    return tuple(grid for path in _paths() for grid in load(path).grid)


def grid(name: str) -> Grid:
    """The grid of this name or alias; MissingDatum, which lists the known ones, where there is no source for it."""
    wanted = toml_files.key(name)
    for one in grids():
        if wanted in {toml_files.key(known) for known in (one.name, *one.aliases)}:
            return one
    known = listed(sorted(one.name for one in grids()))
    raise MissingDatum(
        "no source says what a kilowatt-hour of {name} emits. Give gCO2e per kWh as a number, or one of: {known}.",
        name=shown(name),
        known=known,
    )


def load(path: Path) -> GridFile:
    """Read one file, strictly."""
    form = toml_files.read(path, GridFile)
    for number, one in enumerate(form.grid, 1):
        where = Message("{path}: grid {number} ({one})", path=path, number=number, one=one.name)
        toml_files.within(one.grams_co2e_per_kwh, "grams", f"{where}: grams_co2e_per_kwh")
        toml_files.date(one.as_of, f"{where}: as_of")
        if not one.source.strip():
            raise InvalidInput("{where}: source is empty.", where=where)
    return form


def _paths() -> Iterator[Path]:
    yield from toml_files.user_files("grids")
    yield from sorted((toml_files.HERE / "grids").glob("*.toml"))
