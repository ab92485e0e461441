"""A comparison: its question, its axes, its rows, and which of them is the best in each column."""

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from msgspec import Struct

from tonnage.documents.compare import (
    ComparedAxis,
    ComparedCell,
    ComparedColumn,
    CompareDocument,
    ComparedVerb,
    ComparedVerdict,
    ComparedWorkload,
)
from tonnage.documents.document import builtins
from tonnage.documents.question import Entry
from tonnage.kernel.message import Message
from tonnage.search.compare.axes import COLUMNS, WORKLOAD, Axis
from tonnage.search.compare.columns import Column, better

VERDICTS: tuple[ComparedVerdict, ...] = get_args(ComparedVerdict)  # the better first
STATUS = {"fits": 0, "tight": 2, "not served": 3, "does not fit": 3, "not known": 4, "cannot be": 64}


class Cell(Struct, frozen=True, kw_only=True, eq=False):
    """One row. `at`: its place on each axis; `warnings`: what its answer noted that not all others did."""

    at: tuple[int, ...]
    row: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


class Comparison(Struct, frozen=True, kw_only=True, eq=False):
    """Every cell, in the order of the axes or as `sort` asked. `key`: the figure that decides what is best where one
    figure has to;
    `settings`: what the questions of all answers have in common, with where it comes from; `warnings`: what every
    answer noted; `providers`: whose prices they are, where nobody said it and some machine costs less elsewhere.
    """

    verb: str
    question: Mapping[str, Entry]
    axes: tuple[Axis, ...]
    columns: tuple[Column, ...]
    cells: tuple[Cell, ...]
    key: Column
    settings: Mapping[str, Entry] = {}
    warnings: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{verdict}: {number:,}" for verdict, number in self.counts.items())
        return Message(
            "<{type} {verb}, {count:,} cells, {verdicts}>",
            type=type(self).__name__,
            verb=self.verb,
            count=len(self.cells),
            verdicts=verdicts,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each cell, with a value, or None, for each column."""
        return [dict(cell.row) for cell in self.cells]

    @property
    def counts(self) -> dict[ComparedVerdict, int]:
        """The number of cells with each verdict."""
        verdicts = [cell.row["verdict"] for cell in self.cells]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS if verdict in verdicts}

    @property
    def status(self) -> int:
        """That of the best cell: 0 one fits, 2 the best is tight, 3 none fits, 4 nothing is known, 64 nothing can
        be.
        """
        return STATUS[next(iter(self.counts))]

    @property
    def best(self) -> dict[str, list[int]]:
        """Of each column with a better end, the rows that have the best value of those that fit; of those that are
        tight where none does.
        """
        return self.best_among(range(len(self.cells)))

    def best_among(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        """The best rows of each column, as `best`, among these rows only."""
        for verdict in VERDICTS[:2]:
            among = [number for number in numbers if self.cells[number].row["verdict"] == verdict]
            if among:
                return {column.name: rows for column in self.columns if (rows := self.best_of(among, column))}
        return {}

    @property
    def loads(self) -> list[int]:
        """The axes whose values are different workloads, such as context and users: one is no better than another."""
        return [number for number, axis in enumerate(self.axes) if axis.varies and axis.name in WORKLOAD]

    @property
    def workloads(self) -> dict[tuple[int, ...], list[int]]:
        """The rows of each workload, by its place on `loads`; nothing where there is but one workload."""
        workloads: dict[tuple[int, ...], list[int]] = {}
        for number, cell in enumerate(self.cells if self.loads else ()):
            workloads.setdefault(tuple(cell.at[axis] for axis in self.loads), []).append(number)
        return dict(sorted(workloads.items()))

    def best_of(self, among: Sequence[int], column: Column) -> list[int]:
        """Those of these rows that are best in a column; none where none has a value."""
        worth = {number: better(column, self.cells[number].row) for number in among if column.better}
        lowest = min(worth.values(), default=float("inf"))
        return [number for number, value in worth.items() if value == lowest < float("inf")]

    def _load(self, at: Sequence[int]) -> dict[str, str]:
        """The values of one workload as text."""
        axes = [self.axes[number] for number in self.loads]
        return {axis.name: axis.labels[place] for axis, place in zip(axes, at, strict=True)}

    @property
    def notes(self) -> dict[str, int]:
        """The notes that only some answers have, with the number of answers; the most frequent first."""
        counts: dict[str, int] = {}
        for cell in self.cells:
            for warning in cell.warnings:
                counts[warning] = counts.get(warning, 0) + 1
        return dict(sorted(counts.items(), key=lambda pair: -pair[1]))

    @property
    def across(self) -> int | None:
        """The axis that stands across a table; None where less than two vary."""
        vary = [number for number, axis in enumerate(self.axes) if axis.varies]
        if len(vary) < 2:
            return None
        return next((number for number in vary if self.axes[number].name in COLUMNS), vary[-1])

    @property
    def document(self) -> CompareDocument:
        """The document that the command line, the page and the API show."""
        return CompareDocument(
            verb=cast("ComparedVerb", self.verb),
            question=dict(self.question),
            axes=[ComparedAxis(name=axis.name, values=list(axis.labels)) for axis in self.axes],
            columns=[
                ComparedColumn(name=column.name, unit=column.unit, better=column.better or None)
                for column in self.columns
            ],
            counts=self.counts,
            cells=[cast("ComparedCell", {**cell.row, "warnings": list(cell.warnings)}) for cell in self.cells],
            key=self.key.name,
            best=self.best,
            workloads=[
                ComparedWorkload(values=self._load(at), cells=numbers, best=self.best_among(numbers))
                for at, numbers in self.workloads.items()
            ],
            settings=dict(self.settings),
            warnings=list(self.warnings),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)
