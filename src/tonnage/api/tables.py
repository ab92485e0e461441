"""Tables of questions in Python: data frames of polars and pandas, mappings of columns, lists of rows. A table of
figures comes back as the same kind. polars and pandas are used where the table is theirs, and never imported else.
"""

from collections.abc import Mapping, Sequence
from math import isnan
from os import PathLike
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.frames import PANDAS, POLARS, Kind
from tonnage.kernel.message import listed
from tonnage.spec import Cluster

ALONE = (str, bytes, Mapping, Model, Cluster, PathLike)  # values that are one cell


class Table(Struct, frozen=True, eq=False):
    """A table: cells by column, None where there is no value. `original`: what was given, of the kind `form`."""

    original: Any
    form: str
    count: int
    columns: Mapping[str, list[Any]]

    def with_figures(self, figures: Mapping[str, list[Any]], kinds: Mapping[str, Kind]) -> Any:
        """The given table with columns beside its own, of the same kind as it is."""
        if self.form == "polars":
            import polars

            return self.original.with_columns(
                [
                    polars.Series(name, figures[name], dtype=getattr(polars, POLARS[kind]))
                    for name, kind in kinds.items()
                ]
            )
        if self.form == "pandas":
            import pandas

            return self.original.assign(
                **{name: pandas.Series(figures[name], dtype=PANDAS[kind]).array for name, kind in kinds.items()}
            )
        if self.form == "rows":
            return [
                {**row, **{name: figures[name][number] for name in kinds}} for number, row in enumerate(self.original)
            ]
        own = {name: column if _is_column(column) else self.columns[name] for name, column in self.original.items()}
        return {**own, **{name: figures[name] for name in kinds}}


def table_of(table: Any) -> Table:
    """The cells of a table. InvalidInput where it is none."""
    library = type(table).__module__.partition(".")[0]
    if library == "polars" and hasattr(table, "to_dict") and hasattr(table, "columns"):
        columns = {name: _cells(table[name].to_list()) for name in table.columns}
        return Table(table, "polars", len(table), columns)
    if library == "pandas" and hasattr(table, "columns"):
        names = list(table.columns)
        if len(set(names)) < len(names):
            raise InvalidInput("a table has each column once. Got {names}.", names=shown(names))
        columns = {str(name): _cells(table[name].astype(object).tolist()) for name in names}
        return Table(table, "pandas", len(table), columns)
    if isinstance(table, Mapping):
        return _of_columns(table)
    if (
        isinstance(table, Sequence)
        and not isinstance(table, str | bytes)
        and all(isinstance(row, Mapping) for row in table)
    ):
        names = list(dict.fromkeys(name for row in table for name in row))
        columns = {str(name): _cells([row.get(name) for row in table]) for name in names}
        return Table(table, "rows", len(table), columns)
    raise InvalidInput(
        "a table is a data frame of polars or pandas, a mapping of names to columns, or a list of mappings. "
        "Got {type}.",
        type=type(table).__name__,
    )


def _of_columns(table: Mapping[Any, Any]) -> Table:
    """A mapping of columns, or of one value for all rows."""
    several = {str(name): _listed(name, column) for name, column in table.items() if _is_column(column)}
    lengths = {name: len(column) for name, column in several.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInput(
            "the columns of a table are as long as each other. Got {lengths}.",
            lengths=listed(f"{name}: {length}" for name, length in lengths.items()),
        )
    count = next(iter(lengths.values()), 1 if table else 0)
    columns = {
        str(name): several[str(name)] if str(name) in several else _cells([value]) * count
        for name, value in table.items()
    }
    return Table(table, "columns", count, columns)


def _is_column(value: Any) -> bool:
    """Whether it is several values: a list, a tuple, an array or a series."""
    return hasattr(value, "__len__") and hasattr(value, "__iter__") and not isinstance(value, ALONE)


def _listed(name: Any, column: Any) -> list[Any]:
    if getattr(column, "ndim", 1) != 1:
        raise InvalidInput(
            "a column is a list of values. {name} has {dimensions} dimensions.", name=name, dimensions=column.ndim
        )
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(column, method):
            return _cells(getattr(column, method)())
    return _cells(list(column))


def _cells(values: list[Any]) -> list[Any]:
    """Values of Python's own types; None for what is missing."""
    return [value if type(value) in (str, int, bool) else _plain(value) for value in values]


def _plain(value: Any) -> Any:
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if hasattr(value, "item") and hasattr(value, "dtype"):
        value = value.item()
    return None if isinstance(value, float) and isnan(value) else value
