"""A copy of saved plans, made before their tables are changed."""

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL, Connection, inspect, text

from tonnage.web.sqlite import make_private

PREFIX = "tonnage_"
SUFFIX = "_backup_"


def back_up(url: URL, connection: Connection, version: int) -> str:
    """Copy the tables of a `version`, as they were committed last; what the copy is called. `connection` keeps
    others from writing meanwhile.
    """
    when = f"{datetime.now(UTC):%Y%m%d%H%M%S}"
    if url.get_backend_name() == "sqlite":
        return str(_copy_file(Path(url.database or ""), version, when))
    return _copy_tables(connection, version, when)


def _copy_file(path: Path, version: int, when: str) -> Path:
    """A file beside the data base, readable by its owner alone, and on the disk when this returns."""
    backup = path.with_name(f"{path.name}.version-{version}.{when}.backup")
    unfinished = backup.with_name(f"{backup.name}.part")
    unfinished.unlink(missing_ok=True)
    make_private(unfinished)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(unfinished)) as copy:
        source.backup(copy)
    with unfinished.open("rb+") as file:
        os.fsync(file.fileno())
    unfinished.rename(backup)
    return backup


def _copy_tables(connection: Connection, version: int, when: str) -> str:
    """Tables beside those of the data base, in the transaction of `connection`."""
    ending = f"{SUFFIX}{version}_{when}"
    names = [name for name in inspect(connection).get_table_names() if name.startswith(PREFIX) and SUFFIX not in name]
    for name in names:
        connection.execute(text(f'CREATE TABLE "{name}{ending}" AS TABLE "{name}"'))
    return f"tables {', '.join(f'{name}{ending}' for name in names)}"
