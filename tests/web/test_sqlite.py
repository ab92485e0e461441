"""Many who open a SQLite file at the same moment, which none of them has made yet."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from tonnage.web.jobs.board import Board
from tonnage.web.sqlite import write_ahead
from tonnage.web.store.opened import Opened


def jobs(folder):
    return Board(folder)


def plans(folder):
    return Opened(f"sqlite:///{folder / 'plans.db'}", own=True).for_saving()


@pytest.mark.parametrize("opened", [jobs, plans])
def test_workers_that_start_at_the_same_moment_all_start(tmp_path, opened):
    together = Barrier(4)

    def start(folder):
        together.wait()
        opened(folder).close()

    with ThreadPoolExecutor(4) as threads:
        for number in range(25):
            folder = tmp_path / str(number)
            folder.mkdir()
            assert [*threads.map(start, [folder] * 4)] == [None] * 4


def test_a_file_that_somebody_keeps_locked_is_an_error_when_patience_ends(tmp_path):
    with closing(sqlite3.connect(tmp_path / "one.db", isolation_level=None)) as keeping:
        keeping.execute("BEGIN EXCLUSIVE")
        with (
            closing(sqlite3.connect(tmp_path / "one.db", timeout=0)) as waiting,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            write_ahead(waiting, 0)
