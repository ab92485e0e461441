"""Axes of a comparison: each thing that was given, with one value or several. Their product is the cells."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import option_name
from tonnage.kernel.units import human

MAX_CELLS = 10_000
OWN = "own"  # in place of a value: as if the option had not been given
# What is asked for, beside the model, its form and its machine: answers to different values of these are not rivals.
WORKLOAD = (
    "context",
    "sequence_length",
    "concurrency",
    "request_rate",
    "trace",
    "input_tokens",
    "output_tokens",
    "global_batch_size",
    "tokens",
    "epochs",
    "max_steps",
)
COMMAS_FROM = 10**6  # numbers from here on are hard to read without commas
COLUMNS = ("context", "sequence_length")  # an axis that stands across a table, where it has several values


class Axis(Struct, frozen=True, kw_only=True):
    """One thing that was given. `values` are as the estimate takes them, None for its own default; `labels` the same
    as text: numbers are written as numbers, however they were typed, and names as they were.
    """

    name: str
    values: tuple[Any, ...]
    labels: tuple[str, ...]

    @property
    def varies(self) -> bool:
        return len(self.values) > 1

    def shown(self, at: int) -> str:
        """A value as tables have it: bytes with their unit, long numbers with commas."""
        value = self.values[at]
        if self.name.endswith("_bytes") and value is not None:
            return human(value, "bytes")
        return f"{value:,}" if isinstance(value, int) and value >= COMMAS_FROM else self.labels[at]


def axis(name: str, values: Sequence[Any], labels: Sequence[str] = ()) -> Axis:
    """An axis with each value once."""
    if not values:
        raise InvalidInput("{name} has no value: give one or several.", name=option_name(name))
    once: dict[Any, tuple[Any, str]] = {}
    for value, label in zip(values, labels or [_label(entry) for entry in values], strict=True):
        key = (type(value), value) if isinstance(value, str | int | float) else id(value)
        once.setdefault(key, (value, label))
    return Axis(name=name, values=tuple(v for v, _ in once.values()), labels=tuple(t for _, t in once.values()))


def ordered(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes as rows go through them: what stands across a table changes fastest."""
    return tuple(sorted(axes, key=lambda axis: axis.name in COLUMNS))


def check_size(axes: Sequence[Axis]) -> None:
    """Raise InvalidInput where the axes give more than MAX_CELLS cells."""
    cells = prod(len(axis.values) for axis in axes)
    if cells > MAX_CELLS:
        sizes = " x ".join(f"{len(axis.values):,} {axis.name}" for axis in axes if axis.varies)
        raise InvalidInput(
            "a comparison has at most {most_cells:,} cells. Got {sizes} = {cells:,}: leave some values out.",
            most_cells=MAX_CELLS,
            sizes=sizes,
            cells=cells,
        )


def points(axes: Sequence[Axis]) -> Iterator[tuple[int, ...]]:
    """The position of every cell on each axis, in the order of the rows."""
    return product(*(range(len(axis.values)) for axis in axes))


def _label(value: Any) -> str:
    if value is None:
        return OWN
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return ("on" if value else "off") if isinstance(value, bool) else str(getattr(value, "name", value))
