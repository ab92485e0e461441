"""Tables as loops: `every_row` takes what `pytest.mark.parametrize` takes, and checks all rows in one case that reports
every failure.

For tables of many rows that take a few milliseconds each, where a case of pytest costs more than the check. Fixtures of
the test are made once for all rows, so a test that changes `tmp_path` or `monkeypatch` stays parametrized.
"""

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest

MAX_NAME = 200  # characters of a value in the name of its row
MAX_TRACEBACKS = 3  # failures shown with their traceback; all are shown with their row and message


def every_row(
    names: str | tuple[str, ...],
    rows: Iterable[Any],
    *,
    at_least: int = 1,
    ids: Callable[[Any], Any] | Iterable[str] | None = None,
) -> Callable:
    """A decorator: the test runs once for each row, and fails once, with every row that failed.

    `names` are the arguments that a row gives. `at_least` is how many rows the table has or more, so that a table that
    has lost its rows fails. `ids` gives the name of a value, or the names of the rows, as for `parametrize`.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [values(row, len(arguments)) for row in rows]
    named = [name_of(row, ids) for row in table] if ids is None or callable(ids) else list(ids)
    assert len(named) == len(table), "ids must name every row"

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def loop(**fixtures: Any) -> None:
            __tracebackhide__ = True
            assert len(table) >= at_least, f"{len(table)} rows, but at least {at_least} belong to this table"
            failures = []
            for name, row in zip(named, table, strict=True):
                try:
                    test(**dict(zip(arguments, row, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001
                    failures.append((name, error))
            if failures:
                pytest.fail(report(failures, len(table)), pytrace=False)

        signature = inspect.signature(test)
        given = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        loop.__signature__ = signature.replace(parameters=given)
        return loop

    return decorate


def values(row: Any, count: int) -> tuple:
    """The values of a row: itself where one is wanted, what it holds where several are, or what `pytest.param`
    holds.
    """
    if isinstance(row, type(pytest.param())):
        assert not row.marks, "a row with marks needs a case of its own: parametrize it"
        return tuple(row.values)
    return (row,) if count == 1 else tuple(row)


def name_of(row: tuple, ids: Callable[[Any], Any] | None) -> str:
    texts = [f"{value if ids is None else ids(value)}" for value in row]
    return ", ".join(text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}..." for text in texts)


def report(failures: list[tuple[str, BaseException]], rows: int) -> str:
    """Each row that failed with its message; the first of them with tracebacks."""
    lines = [f"{len(failures)} of {rows} rows fail:"]
    lines += [f"  [{row}] {type(error).__name__}: {error}" for row, error in failures]
    for row, error in failures[:MAX_TRACEBACKS]:
        lines += ["", f"[{row}]", "".join(traceback.format_exception(error)).rstrip()]
    return "\n".join(lines)
