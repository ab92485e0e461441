"""Whether a SQLite file holds saved plans of a version that this tonnage reads. What is not ours is left as it is."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tonnage.kernel.message import Message, listed
from tonnage.web.store.conflict import StoreError
from tonnage.web.store.tables import SCHEMA, VERSION

PATIENCE = 10  # seconds for others to finish a write
NAMED = 3  # tables of another program that the error names


def check_file(path: Path, *, thoroughly: bool = False) -> None:
    """StoreError where there is a file that is no data base of saved plans. `thoroughly`: read all of it, and look
    for damage.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise StoreError("it is no regular file.")
    try:
        with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=rw", uri=True, timeout=PATIENCE)) as base:
            _check_tables(base)
            state = base.execute("PRAGMA quick_check(1)").fetchone()[0] if thoroughly else "ok"
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
            raise StoreError("the file is no SQLite data base.") from error
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CORRUPT:
            state = str(error)
        else:
            raise StoreError(
                Message("the data base of saved plans does not answer ({type}).", type=type(error).__name__)
            ) from error
    if state != "ok":
        raise StoreError("the data base of saved plans is damaged: restore a backup of it, or use another data base.")


def check_version(version: object) -> None:
    """StoreError where tables are of a version that this tonnage does not know."""
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise StoreError(
            Message(
                "the data base of saved plans has tables of version {version}, and this tonnage knows "
                "version {version2} and older: use the tonnage that made them, or another data base.",
                version=version,
                version2=VERSION,
            )
        )


def _check_tables(base: sqlite3.Connection) -> None:
    rows = base.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'")
    names = sorted(name for (name,) in rows)
    if not names:
        return
    if SCHEMA.name not in names:
        more = ", ..." if len(names) > NAMED else ""
        raise StoreError(
            Message(
                "the data base is of another program, with tables {names}{more}: use another file.",
                names=listed(names[:NAMED]),
                more=more,
            )
        )
    columns = [row[1] for row in base.execute(f"PRAGMA table_info({SCHEMA.name})")]
    if columns != ["version"]:
        raise StoreError(
            Message(
                "the data base is of another program, whose table {schema} has other columns: use another file.",
                schema=SCHEMA.name,
            )
        )
    for (version,) in base.execute(f"SELECT version FROM {SCHEMA.name} LIMIT 1"):
        check_version(version)
