"""What a reader makes of a row: a question of tonnage, where its inputs come from, and what its figures are."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from rows.source import Measured
from tonnage.validation.quantities import BYTES


class Reading(Struct, frozen=True, eq=False, kw_only=True):
    """A row in tonnage's own form, but for its figures. `figure`: a metric of the row -> quantity, unit and what else
    it needs; a TonnageError
    for one that nothing predicts. The others: docs/rows.md."""

    verb: str
    question: Mapping[str, Any]
    figure: Callable[[Measured], dict[str, Any]]
    implied: Mapping[str, str] = {}
    guessed: Mapping[str, str] = {}
    from_measured: Mapping[str, str] = {}
    completeness: str = ""  # "": as the source's row says
    remarks: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


def unit_name(size: float) -> str:
    """The name of a unit of so many bytes."""
    return next(name for name, each in BYTES.items() if each == size)
