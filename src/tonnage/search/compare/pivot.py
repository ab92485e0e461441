"""A comparison as a table across: a line for each combination of the axes but one, whose values are the columns."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.search.compare.columns import Column, named
from tonnage.search.compare.comparison import VERDICTS, Cell, Comparison

SHOWN = {
    "serve": ("accelerators", "requests_that_fit", "tpot_seconds", "usd_per_million_tokens"),
    "train": ("accelerators", "step_seconds", "mfu", "usd_per_billion_tokens", "run_seconds", "run_usd"),
}
IN_ROWS = {
    "serve": (
        "accelerators",
        "needed_bytes",
        "requests_that_fit",
        "longest_context_tokens",
        "ttft_seconds",
        "tpot_seconds",
        "tokens_per_second",
        "usd_per_hour",
        "usd_per_million_tokens",
    ),
    "train": (
        "accelerators",
        "needed_bytes",
        "step_seconds",
        "tokens_per_second",
        "mfu",
        "usd_per_hour",
        "usd_per_step",
        "usd_per_billion_tokens",
        "run_seconds",
        "run_usd",
    ),
}
# What changes speed and price, and may differ from cell to cell without being asked for.
TAKEN = (
    "engine",
    "runtime",
    "precision",
    "concurrency",
    "input_tokens",
    "output_tokens",
    "sequence_length",
    "global_batch_size",
)
UNSHOWN = (
    "reason",
    "verdict",
    "usable_bytes",
    "nodes",
    "weights_stored",
    "accelerators_paid",
)  # of what cells have in common


class Line(Struct, frozen=True, kw_only=True):
    """A line of the table: what it is, and the number of the cell in each column."""

    labels: tuple[str, ...]
    cells: tuple[int, ...]


class Pivot(Struct, frozen=True, kw_only=True):
    """`down`: names of the axes whose values are lines; `across`: that of the columns, which `heads` names; `best`:
    cells with the best key figure of their column.
    """

    down: tuple[str, ...]
    across: str
    heads: tuple[str, ...]
    lines: tuple[Line, ...]
    best: frozenset[int]


def pivot(made: Comparison) -> Pivot | None:
    """The table across; None where less than two axes vary. Lines come in the order of their first cell."""
    across = made.across
    if across is None:
        return None
    down = [number for number, axis in enumerate(made.axes) if axis.varies and number != across]
    found: dict[tuple[int, ...], dict[int, int]] = {}
    for number, cell in enumerate(made.cells):
        found.setdefault(tuple(cell.at[axis] for axis in down), {})[cell.at[across]] = number
    columns = range(len(made.axes[across].values))
    lines = [
        Line(
            labels=tuple(label(made, axis, [made.cells[n] for n in row.values()]) for axis in down),
            cells=tuple(row[each] for each in columns),
        )
        for row in found.values()
    ]
    best = [number for each in columns for number in _best_each(made, [row[each] for row in found.values()])]
    heads = [label(made, across, [cell for cell in made.cells if cell.at[across] == each]) for each in columns]
    return Pivot(
        down=tuple(made.axes[number].name for number in down),
        across=made.axes[across].name,
        heads=tuple(heads),
        lines=tuple(lines),
        best=frozenset(best),
    )


def label(made: Comparison, number: int, cells: Sequence[Cell]) -> str:
    """What an axis says in these cells, which have it in common: its value, and what its default came to."""
    axis = made.axes[number]
    at = cells[0].at[number]
    if axis.values[at] is not None:
        return axis.shown(at)
    found = {str(cell.row[axis.name]) for cell in cells if cell.row.get(axis.name) not in (None, axis.labels[at])}
    return f"{axis.labels[at]}: {found.pop()}" if len(found) == 1 else axis.labels[at]


def shown(made: Comparison, asked: Sequence[str], *, across: bool) -> tuple[Column, ...]:
    """The figures of a table: those that were asked for, else the usual ones that this comparison has."""
    if asked:
        return tuple(named(made.verb, each, made.columns) for each in asked)
    usual = (SHOWN if across else IN_ROWS)[made.verb]
    known = {column.name: column for column in made.columns}
    counted = "count" in made.question or any(part_paid(cell.row) for cell in made.cells)
    return tuple(known[name] for name in usual if name in known and (name != "accelerators" or counted))


def part_paid(row: Mapping[str, Any]) -> bool:
    """Whether more accelerators are rented than are used."""
    return bool(row["accelerators_paid"] and row["accelerators_paid"] > row["accelerators"])


def settings(made: Comparison) -> dict[str, Any]:
    """What all cells that were answered have in common, beside figures; sizes of one, which split nothing, where
    they were asked for alone.
    """
    answered = [cell.row for cell in made.cells if cell.row["needed_bytes"] is not None]
    vary = {axis.name for axis in made.axes if axis.varies}
    found = {}
    for name in (column.name for column in made.columns if not column.better and column.name not in UNSHOWN):
        values = {row[name] for row in answered}
        if len(values) != 1 or name in vary or values == {None}:
            continue
        (value,) = values
        if name in made.question or not (value == 1 and name.endswith(("_size", "replicas"))):
            found[name] = value
    return found


def differing(made: Comparison) -> dict[str, list[tuple[Any, str]]]:
    """What answers took that is not the same in all, though nobody asked for several: each value with the axis that
    brings it, if one does. The usual value comes first, without.
    """
    answered = [cell for cell in made.cells if cell.row["needed_bytes"] is not None]
    vary = {axis.name for axis in made.axes if axis.varies}
    found = {}
    for name in TAKEN:
        values = Counter(cell.row[name] for cell in answered if cell.row.get(name) is not None)
        if len(values) > 1 and name not in vary:
            (first, _), *others = values.most_common()
            found[name] = [(first, ""), *((value, _bringing(made, answered, name, value)) for value, _ in others)]
    return found


def _bringing(made: Comparison, answered: Sequence[Cell], name: str, value: Any) -> str:
    """The values of an axis with which this is taken and without which it is not; nothing where no axis says it
    alone.
    """
    for number, axis in enumerate(made.axes):
        with_it = {cell.at[number] for cell in answered if cell.row[name] == value}
        without = {cell.at[number] for cell in answered if cell.row[name] != value}
        if axis.varies and not with_it & without:
            return f"{axis.name} {', '.join(axis.shown(at) for at in sorted(with_it))}"
    return ""


def reasons(made: Comparison) -> dict[str, int]:
    """Why cells have no answer, or one that is not whole, in words, numbered as they come."""
    found: dict[str, int] = {}
    for cell in made.cells:
        if cell.row["reason"]:
            found.setdefault(cell.row["reason"], len(found) + 1)
    return found


def _best_each(made: Comparison, among: Sequence[int]) -> list[int]:
    """The best of each workload."""
    parts = [[number for number in rows if number in set(among)] for rows in made.workloads.values()]
    return [number for part in (parts or [list(among)]) for number in _best(made, part)]


def _best(made: Comparison, among: Sequence[int]) -> list[int]:
    for verdict in VERDICTS[:2]:
        held = [number for number in among if made.cells[number].row["verdict"] == verdict]
        if held:
            return made.best_of(held, made.key)
    return []
