"""Rows as a table of HTML, for notebooks: text is escaped, and colours are left to the notebook, dark or light."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


def html_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return the columns of the rows as one table.

    >>> html_table([{"name": "a<b", "unit": None}], ["name", "unit"])
    '<table><thead><tr><th>name</th><th>unit</th></tr></thead><tbody><tr><td>a&lt;b</td><td></td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in columns) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return escape(f"{value:,.4g}" if isinstance(value, float) else str(value))
