"""The columns of figures that many questions are answered with: their names, what they hold, and how rows that failed
stand among the others.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import isnan
from typing import Any, TypeVar

import numpy as np
from msgspec import UNSET

from tonnage.kernel.errors import TonnageError
from tonnage.kernel.frames import Kind
from tonnage.kernel.term import Term

T = TypeVar("T")
Columns = dict[str, list[Any]]
Figures = dict[str, Any]  # of one row, by column; what is not known is left out

VERDICT: dict[str, Kind] = {
    "fits": "truth",
    "status": "whole",
    "needed_bytes": "whole",
    "usable_bytes": "whole",
    "band_low_bytes": "whole",
    "band_high_bytes": "whole",
}
TRAINING: dict[str, Kind] = {
    **VERDICT,
    "weights_bytes": "number",
    "gradients_bytes": "number",
    "optimizer_bytes": "number",
    "activations_bytes": "number",
    "temporary_bytes": "number",
    "communication_buffers_bytes": "number",
    "runtime_overhead_bytes": "number",
    "step_seconds": "number",
    "step_seconds_low": "number",
    "step_seconds_high": "number",
    "tokens_per_second": "number",
    "mfu": "number",
    "hfu": "number",
    "bound_by": "text",
    "step_usd": "number",
    "run_seconds": "number",
    "run_usd": "number",
    "usd_per_million_tokens": "number",
    "error": "text",
}
SERVING: dict[str, Kind] = {
    **VERDICT,
    "weights_bytes": "number",
    "kv_cache_bytes": "number",
    "activations_bytes": "number",
    "communication_buffers_bytes": "number",
    "runtime_overhead_bytes": "number",
    "kv_bytes_per_token": "number",
    "kv_bytes_per_request": "number",
    "max_concurrency": "number",
    "max_safe_concurrency": "number",
    "kv_capacity_tokens": "number",
    "ttft_seconds": "number",
    "tpot_seconds": "number",
    "end_to_end_seconds": "number",
    "tokens_per_second_per_user": "number",
    "output_tokens_per_second": "number",
    "total_tokens_per_second": "number",
    "requests_per_second": "number",
    "largest_rate": "number",
    "usd_per_hour": "number",
    "usd_per_million_tokens": "number",
    "usd_per_million_output_tokens": "number",
    "error": "text",
}


def refused(error: TonnageError) -> Figures:
    """The figures of a row whose question has no answer: why, and the status of its kind."""
    return {"status": error.exit_status, "error": error}


def answered(
    rows: Sequence[T | TonnageError],
    key: Callable[[T], Hashable],
    answer: Callable[[list[T]], list[Figures]],
    kinds: Mapping[str, Kind],
) -> Columns:
    """A column for each name of `kinds`, in the order of the rows; None where a row has no such figure. `error` has
    the errors themselves.

    Rows that ask the same are answered once; `answer` has a row of figures for each that it is given. A row that is
    an error already has its message.
    """
    places: dict[Hashable, int] = {}
    asked: list[T] = []
    where: list[int] = []
    for row in rows:
        if isinstance(row, TonnageError):
            where.append(-1)
            continue
        place = places.setdefault(key(row), len(asked))
        if place == len(asked):
            asked.append(row)
        where.append(place)
    found = answer(asked)
    figures = [
        refused(row) if isinstance(row, TonnageError) else found[place] for row, place in zip(rows, where, strict=True)
    ]
    return {name: [row.get(name) for row in figures] for name in kinds}


def rows_of(columns: Mapping[str, Any], count: int) -> list[Figures]:
    """Columns of arrays, lists, or one value for all, as rows of plain values; NaN is nothing."""
    names, values = [], []
    for name, column in columns.items():
        plain = column.tolist() if isinstance(column, np.ndarray | np.generic) else column
        names.append(name)
        values.append(plain if isinstance(plain, list) and len(plain) == count else [plain] * count)
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None and not _is_nan(value)}
        for row in zip(*values, strict=True)
    ]


def column_of(part: Term) -> str:
    """The column of a part of the memory."""
    return f"{part.name.replace(' ', '_')}_bytes"


def value_of(term: Any) -> Any:
    """The value of a Term; None where there is none."""
    return None if term is None or term is UNSET else term.value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)
