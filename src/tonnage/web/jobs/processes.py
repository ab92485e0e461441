"""Ends processes: of one job, and of the jobs of a server that was killed, for the server that takes its place."""

import os
import signal
import sqlite3
from contextlib import suppress
from pathlib import Path

from tonnage.web.jobs.board import Board
from tonnage.web.jobs.folder import is_held
from tonnage.web.jobs.limits import JobLimits


def end_process(pid: int) -> None:
    """End a process at once, with all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def end_lost_jobs(folder: Path, limits: JobLimits) -> None:
    """Call jobs lost that ran when the server was killed, and end those of their processes that are still there.
    Jobs that waited wait on.
    """
    if not (folder / "jobs.db").exists():
        return
    try:
        board = Board(folder)
    except sqlite3.DatabaseError:  # the machine stopped too: nothing of this file had to outlive it
        for path in folder.glob("jobs.db*"):
            with suppress(OSError):
                path.unlink()
        return
    for job, pid in board.processes():
        if pid is not None and is_held(board.lock_of(job)):  # so that the number is still that process's
            end_process(pid)
        board.lose(job)
    board.tidy(limits)
    board.close()
