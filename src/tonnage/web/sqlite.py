"""What every SQLite file of a server needs: several processes open one that none of them has made yet."""

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

RETRY_SECONDS = 0.005  # seconds between two tries
PRIVATE = 0o600  # of files: their owner alone reads and writes them


def make_private(path: Path) -> None:
    """Make the file where it is not there, for its owner alone. SQLite gives the files that it puts beside one
    (-wal, -shm) the same permissions.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))


def close_to_others(path: Path) -> None:
    """Take the file, and those that SQLite has put beside it, from everybody but their owner."""
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        with suppress(FileNotFoundError):
            file.chmod(PRIVATE)


def write_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Let readers read while somebody writes. sqlite3.OperationalError where others keep the file locked for more than
    `patience` seconds.

    The first to open a file turns it over alone. SQLite makes others wait by its busy handler where they read or write,
    but not where they turn the file over at the same moment: these are told that it is locked, at once
    (https://www.sqlite.org/c3ref/busy_handler.html, on deadlocks).
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            is_locked = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # higher bits say how
            if not is_locked or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return
