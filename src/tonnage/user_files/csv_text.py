"""CSV within bounds: unique names in the header, a bounded number of rows."""

import csv
import io
from collections.abc import Iterator

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.user_files.json_text import first_repeated

MAX_COLUMNS = 1_000


class Rows:
    """The header of a CSV text, and its rows with their lines. Empty lines are left out."""

    def __init__(self, text: str, where: str):
        self.where = where
        self._reader = csv.reader(io.StringIO(text, newline=""))
        self.header = [name.strip() for name in self._next() or []]
        if len(self.header) > MAX_COLUMNS:
            raise InvalidInput(
                "{where}: line 1: a table has at most {most_columns:,} columns. Got {count:,}.",
                where=where,
                most_columns=MAX_COLUMNS,
                count=len(self.header),
            )
        repeated = first_repeated(name.lower() for name in self.header if name)
        if repeated is not None:
            raise InvalidInput(
                "{where}: line 1: two columns are called {repeated}: names must differ.",
                where=where,
                repeated=shown(repeated),
            )

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        while (cells := self._next()) is not None:
            if cells:
                yield self._reader.line_num, cells

    def _next(self) -> list[str] | None:
        try:
            return next(self._reader, None)
        except csv.Error as error:
            raise InvalidInput(
                "{where}: line {line_num}: not CSV ({error}).",
                where=self.where,
                line_num=self._reader.line_num,
                error=error,
            ) from None
