"""Rows that fits and bands may read: all but those that are left out for good."""

from collections.abc import Iterable
from pathlib import Path

from tonnage.validation import Row, read

ROOT = Path(__file__).parents[1]
RECENT = ROOT / "validation" / "recent"


def rows_for_fits(paths: Iterable[Path | str], kind: str | None = None, *, recent: bool = False) -> list[Row]:
    """The rows of these files, of one kind where one is named, without those that are left out for good.

    `recent`: the rows of validation/recent too, those of new sources.
    """
    every = read([*map(str, paths), *([str(RECENT)] if recent else [])])
    return [row for row in every if not row.left_out and kind in (None, row.kind)]


def recent_ids() -> frozenset[str]:
    """Ids of the rows of new sources that fits may read."""
    return frozenset(row.id for row in read([str(RECENT)]) if not row.left_out)
