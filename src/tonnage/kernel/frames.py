"""Rows as data frames: polars and pandas are imported when one is asked for."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tonnage.kernel.errors import InvalidInput, shown

if TYPE_CHECKING:
    import pandas
    import polars

Kind = Literal["text", "whole", "number", "truth"]
Row = Mapping[str, Any]
LIBRARIES = ("pandas", "polars")
POLARS: dict[Kind, str] = {"text": "String", "whole": "Int64", "number": "Float64", "truth": "Boolean"}
PANDAS: dict[Kind, str] = {"text": "object", "whole": "Int64", "number": "float64", "truth": "boolean"}
FORMS: dict[Kind, Any] = {"text": str, "whole": int, "number": float, "truth": bool}


def to_polars(rows: Sequence[Row], kinds: Mapping[str, Kind] | None = None) -> "polars.DataFrame":
    """A polars.DataFrame: a column for each name, null where a row has no value."""
    try:
        import polars
    except ImportError:
        raise InvalidInput("data frames of polars need polars: pip install 'tonnage[notebook]'.") from None
    kinds = kinds or kinds_of(rows)
    schema = {name: getattr(polars, POLARS[kind]) for name, kind in kinds.items()}
    return polars.DataFrame({name: _values(rows, name, kind) for name, kind in kinds.items()}, schema=schema)


def to_pandas(rows: Sequence[Row], kinds: Mapping[str, Kind] | None = None) -> "pandas.DataFrame":
    """A pandas.DataFrame: whole numbers stay whole beside what is missing."""
    try:
        import pandas
    except ImportError:
        raise InvalidInput("data frames of pandas need pandas: pip install 'tonnage[notebook]'.") from None
    kinds = kinds or kinds_of(rows)
    return pandas.DataFrame(
        {name: pandas.Series(_values(rows, name, kind), dtype=PANDAS[kind]) for name, kind in kinds.items()}
    )


def frame(rows: Sequence[Row], kinds: Mapping[str, Kind] | None = None, *, to: str | None = None) -> Any:
    """Return the rows as a data frame of the library `to`, pandas or polars; without it of the one that the program
    imported (pandas where both are), else of the one that is installed.
    """
    if to is not None and to not in LIBRARIES:
        raise InvalidInput("to takes pandas or polars. Got {to}.", to=shown(to))
    library = to or _library()
    return to_polars(rows, kinds) if library == "polars" else to_pandas(rows, kinds)


def _library() -> str:
    from importlib.util import find_spec

    imported = [name for name in LIBRARIES if sys.modules.get(name) is not None]
    # sys.modules has None for a name that shall not be imported, for which find_spec raises ValueError
    known = imported or [name for name in LIBRARIES if name not in sys.modules and find_spec(name) is not None]
    if not known:
        raise InvalidInput("data frames need pandas or polars: pip install 'tonnage[notebook]'.")
    return known[0]


def kinds_of(rows: Sequence[Row]) -> dict[str, Kind]:
    """What each column holds, by its values.

    >>> kinds_of([{"users": 8, "seconds": 1, "fits": True}, {"users": None, "seconds": 0.5, "why": ""}])
    {'users': 'whole', 'seconds': 'number', 'fits': 'truth', 'why': 'text'}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _kind([row[name] for row in rows if row.get(name) is not None]) for name in names}


def flat(row: Row) -> dict[str, Any]:
    """A row of a document with each value in a cell: what it nests stands beside it, lists are texts."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            cells |= flat(value)
        else:
            cells[name] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return cells


def _kind(values: Sequence[Any]) -> Kind:
    if values and all(isinstance(value, bool) for value in values):
        return "truth"
    if values and all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return "whole"
    return (
        "number"
        if values and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        else "text"
    )


def _values(rows: Sequence[Row], name: str, kind: Kind) -> list[Any]:
    form = FORMS[kind]
    return [None if row.get(name) is None else form(row[name]) for row in rows]
