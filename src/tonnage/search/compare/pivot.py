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
# Of models that write no text of their own, in place of those of a server that answers.
ENCODED = {
    "items_per_second": ("items_per_second", "usd_per_million_tokens"),
    "audio_seconds_per_second": ("audio_seconds_per_second", "usd_per_audio_hour"),
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


def pivot(comparison: Comparison) -> Pivot | None:
    """The table across; None where less than two axes vary. Lines come in the order of their first cell."""
    across = comparison.across
    if across is None:
        return None
    down = [number for number, axis in enumerate(comparison.axes) if axis.varies and number != across]
    rows: dict[tuple[int, ...], dict[int, int]] = {}
    for number, cell in enumerate(comparison.cells):
        rows.setdefault(tuple(cell.at[axis] for axis in down), {})[cell.at[across]] = number
    columns = range(len(comparison.axes[across].values))
    lines = [
        Line(
            labels=tuple(label(comparison, axis, [comparison.cells[n] for n in row.values()]) for axis in down),
            cells=tuple(row[position] for position in columns),
        )
        for row in rows.values()
    ]
    best = [
        number for position in columns for number in _best_each(comparison, [row[position] for row in rows.values()])
    ]
    heads = [
        label(comparison, across, [cell for cell in comparison.cells if cell.at[across] == position])
        for position in columns
    ]
    return Pivot(
        down=tuple(comparison.axes[number].name for number in down),
        across=comparison.axes[across].name,
        heads=tuple(heads),
        lines=tuple(lines),
        best=frozenset(best),
    )


def label(comparison: Comparison, number: int, cells: Sequence[Cell]) -> str:
    """The label of an axis for cells that share its value: the value, and what its default became."""
    axis = comparison.axes[number]
    at = cells[0].at[number]
    if axis.values[at] is not None:
        return axis.shown(at)
    values = {str(cell.row[axis.name]) for cell in cells if cell.row.get(axis.name) not in (None, axis.labels[at])}
    return f"{axis.labels[at]}: {values.pop()}" if len(values) == 1 else axis.labels[at]


def shown(comparison: Comparison, names: Sequence[str], *, across: bool) -> tuple[Column, ...]:
    """The figures of a table: those that were asked for, else the usual ones that this comparison has."""
    if names:
        return tuple(named(comparison.verb, figure, comparison.columns) for figure in names)
    usual = (SHOWN if across else IN_ROWS)[comparison.verb]
    known = {column.name: column for column in comparison.columns}
    if items := [name for name in ENCODED if any(cell.row.get(name) for cell in comparison.cells)]:
        sizes = () if across else ("needed_bytes", "usd_per_hour")
        usual = ("accelerators", *sizes, *(figure for name in items for figure in ENCODED[name]))
    is_split = any(cell.row.get("rollout_accelerators") for cell in comparison.cells)
    counted = "count" in comparison.question or is_split or any(part_paid(cell.row) for cell in comparison.cells)
    return tuple(known[name] for name in usual if name in known and (name != "accelerators" or counted))


def part_paid(row: Mapping[str, Any]) -> bool:
    """Whether more accelerators are rented than are used."""
    return bool(row["accelerators_paid"] and row["accelerators_paid"] > row["accelerators"])


def settings(comparison: Comparison) -> dict[str, Any]:
    """What all cells that were answered have in common, beside figures; sizes of one, which split nothing, where
    they were asked for alone.
    """
    answered = [cell.row for cell in comparison.cells if cell.row["needed_bytes"] is not None]
    vary = {axis.name for axis in comparison.axes if axis.varies}
    shared = {}
    for name in (column.name for column in comparison.columns if not column.better and column.name not in UNSHOWN):
        values = {row[name] for row in answered}
        if len(values) != 1 or name in vary or values == {None}:
            continue
        (value,) = values
        if name in comparison.question or not (value == 1 and name.endswith(("_size", "replicas"))):
            shared[name] = value
    return shared


def differing(comparison: Comparison) -> dict[str, list[tuple[Any, str]]]:
    """What answers took that is not the same in all, though nobody asked for several: each value with the axis that
    brings it, if one does. The usual value comes first, without.
    """
    answered = [cell for cell in comparison.cells if cell.row["needed_bytes"] is not None]
    vary = {axis.name for axis in comparison.axes if axis.varies}
    varying = {}
    for name in TAKEN:
        values = Counter(cell.row[name] for cell in answered if cell.row.get(name) is not None)
        if len(values) > 1 and name not in vary:
            (first, _), *others = values.most_common()
            varying[name] = [
                (first, ""),
                *((value, _bringing(comparison, answered, name, value)) for value, _ in others),
            ]
    return varying


def _bringing(comparison: Comparison, answered: Sequence[Cell], name: str, value: Any) -> str:
    """The values of an axis with which this is taken and without which it is not; nothing where no axis says it
    alone.
    """
    for number, axis in enumerate(comparison.axes):
        with_it = {cell.at[number] for cell in answered if cell.row[name] == value}
        without = {cell.at[number] for cell in answered if cell.row[name] != value}
        if axis.varies and not with_it & without:
            return f"{axis.name} {', '.join(axis.shown(at) for at in sorted(with_it))}"
    return ""


def reasons(comparison: Comparison) -> dict[str, int]:
    """Why cells have no answer, or one that is not whole, in words, numbered as they come."""
    numbers: dict[str, int] = {}
    for cell in comparison.cells:
        if cell.row["reason"]:
            numbers.setdefault(cell.row["reason"], len(numbers) + 1)
    return numbers


def _best_each(comparison: Comparison, among: Sequence[int]) -> list[int]:
    """The numbers of the best cells of each workload."""
    parts = [[number for number in rows if number in set(among)] for rows in comparison.workloads.values()]
    return [number for part in (parts or [list(among)]) for number in _best(comparison, part)]


def _best(comparison: Comparison, among: Sequence[int]) -> list[int]:
    for verdict in VERDICTS[:2]:
        held = [number for number in among if comparison.cells[number].row["verdict"] == verdict]
        if held:
            return comparison.best_of(held, comparison.key)
    return []
