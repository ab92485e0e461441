"""What every SQLite file of a server needs: several processes open one that none of them has made yet."""

import sqlite3
import time

AGAIN = 0.005  # seconds between two tries


def write_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Let readers read while somebody writes. sqlite3.OperationalError where others keep the file locked for more than `patience` seconds.

    The first to open a file turns it over alone. SQLite makes others wait by its busy handler where they read or write, but not where they turn the
    file over at the same moment: these are told that it is locked, at once (https://www.sqlite.org/c3ref/busy_handler.html, on deadlocks).
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            is_locked = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # higher bits say how
            if not is_locked or time.monotonic() > deadline:
                raise
            time.sleep(AGAIN)
        else:
            return
