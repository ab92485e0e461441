"""How far single parts of the memory lie from published measurements, where rows measure them by themselves."""

from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.kernel.prepared import tables

FILE = Path(__file__).with_name("part_errors.toml")


class PartError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the part that breakdowns of `runtime` (an engine, of serving) call `part`: nine in ten of `rows` measurements
    lie within `p90` of the estimate, and half within `median`, both as shares of the measurement.
    """

    verb: str
    runtime: str
    part: str
    median: float
    p90: float
    rows: int


class _File(Struct, frozen=True):
    errors: tuple[PartError, ...]


@cache
def part_errors() -> tuple[PartError, ...]:
    """Every part that has measurements of its own, as scripts/part_errors.py wrote them."""
    read: _File = tables(str(FILE), _File)
    return read.errors
