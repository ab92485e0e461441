"""A comparison as files for other tools: CSV, and Parquet. Values are in base units and whole; what nobody knows is
empty.
"""

import csv
import io
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.documents.document import SCHEMA, encode
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.reach import is_folder
from tonnage.search.compare import Comparison

if TYPE_CHECKING:
    import pyarrow as pa

ARROW = {"text": "string", "whole": "int64", "number": "float64", "truth": "bool_"}
FORMS = {"text": str, "whole": int, "number": float, "truth": bool}


def csv_text(comparison: Comparison) -> str:
    """A line for each cell, under the names of the columns."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    names = [column.name for column in comparison.columns]
    writer.writerow(names)
    for cell in comparison.cells:
        writer.writerow([_csv(cell.row[name]) for name in names])
    return held.getvalue()


def check_extra() -> None:
    """InvalidInput with what to install where pyarrow is missing."""
    if find_spec("pyarrow") is None:
        raise InvalidInput(
            "Parquet needs pyarrow, which is not installed: pip install tonnage[cluster], or take --csv."
        )


def arrow_table(comparison: Comparison) -> "pa.Table":
    """A typed column for each column, with its unit; the question and the schema's version are in the metadata."""
    check_extra()
    import pyarrow as pa

    fields, arrays = [], []
    for column in comparison.columns:
        kind, form = getattr(pa, ARROW[column.kind])(), FORMS[column.kind]
        values = [None if cell.row[column.name] is None else form(cell.row[column.name]) for cell in comparison.cells]
        fields.append(pa.field(column.name, kind, metadata={"unit": column.unit} if column.unit else None))
        arrays.append(pa.array(values, type=kind))
    about = {
        "tonnage.schema": SCHEMA,
        "tonnage.verb": comparison.verb,
        "tonnage.question": encode(dict(comparison.question)).decode(),
    }
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=about))


def write_parquet(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """One row a cell."""
    table = arrow_table(comparison)
    import pyarrow.parquet as pq

    folder = Path(path).parent
    if not is_folder(folder):
        raise InvalidInput(
            "{path} cannot be written: {folder} is no folder.",
            path=shown(os.fspath(path)),
            folder=shown(os.fspath(folder)),
        )
    try:
        pq.write_table(table, os.fspath(path))
    except OSError as error:  # pyarrow's own text has the path once more
        why = os.strerror(error.errno) if error.errno else error
        raise InvalidInput("{path} cannot be written: {why}.", path=shown(os.fspath(path)), why=why) from None


def _csv(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)
