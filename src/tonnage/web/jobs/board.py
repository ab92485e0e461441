"""What is known of jobs, in one small SQLite file that all workers of a server and all processes of jobs read and
write.
"""

import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from msgspec import Struct

from tonnage.web.jobs.folder import hold, is_held
from tonnage.web.jobs.limits import JobLimits
from tonnage.web.sqlite import make_private, write_ahead

QUEUED, RUNNING, DONE, FAILED, CANCELLED = STATES = ("queued", "running", "done", "failed", "cancelled")
ENDED = (DONE, FAILED, CANCELLED)
LOST = ("Lost", "the process that worked on it has ended. Ask it again.")
PATIENCE = 10  # seconds for others to finish a write
TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, verb TEXT NOT NULL, question BLOB NOT NULL,
  state TEXT NOT NULL, pid INTEGER, created REAL NOT NULL, started REAL, ended REAL, last INTEGER NOT NULL DEFAULT 0,
  status INTEGER, command TEXT, document BLOB, kind TEXT, message TEXT);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state, number);
CREATE TABLE IF NOT EXISTS progress (
  job TEXT, what TEXT, done INTEGER, "of" INTEGER, last INTEGER, PRIMARY KEY (job, what)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS best (job TEXT PRIMARY KEY, document BLOB NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
"""
SHOWN = "id, verb, state, created, started, ended, last, status, command, kind, message"


class Step(Struct, frozen=True):
    """How far a count is, and the number of the event that said so."""

    what: str
    done: int
    of: int | None
    last: int


class Job(Struct, frozen=True):
    """A job as it is. `last`: number of its latest event; `kind`, `message`: of the error that ended it."""

    id: str
    verb: str
    state: str
    created: float
    started: float | None
    ended: float | None
    last: int
    status: int | None
    command: str | None
    kind: str | None
    message: str | None

    @property
    def over(self) -> bool:
        return self.state in ENDED


class ClaimedJob(Struct, frozen=True):
    """A job to work on. `lock`: number of the locked file that says its process lives."""

    id: str
    verb: str
    question: bytes
    lock: int


class FullError(Exception):
    """No more jobs may wait."""


class Board:
    """One process's view of the file. Every method is one transaction of well below a millisecond."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._lock = RLock()
        make_private(folder / "jobs.db")
        self._base = sqlite3.connect(
            folder / "jobs.db", isolation_level=None, check_same_thread=False, timeout=PATIENCE
        )
        write_ahead(self._base, PATIENCE)
        self._base.execute("PRAGMA synchronous=OFF")  # nothing has to outlive the server: no write waits for the disk
        with self._writing() as base:
            for statement in TABLES.split(";\n"):
                base.execute(statement)

    def close(self) -> None:
        with self._lock:
            self._base.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield self._base
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._base.execute(query, values).fetchall()

    # ---- from being asked to being worked on ----

    def add(self, verb: str, question: bytes, limits: JobLimits) -> str:
        """A job that waits; its name, which nobody guesses. FullError where too many wait."""
        name = secrets.token_urlsafe(18)
        with self._writing() as base:
            (waiting,) = base.execute("SELECT count(*) FROM jobs WHERE state = ?", (QUEUED,)).fetchone()
            if waiting >= limits.waiting:
                raise FullError
            base.execute(
                "INSERT INTO jobs (id, verb, question, state, created) VALUES (?, ?, ?, ?, ?)",
                (name, verb, question, QUEUED, time.time()),
            )
            self._count(base, f"started:{verb}")
        return name

    def take(self, limits: JobLimits) -> ClaimedJob | None:
        """The job that waits longest, where there is a place for it. It runs from now on, and is lost when its lock
        is given up.
        """
        with self._writing() as base:
            (running,) = base.execute("SELECT count(*) FROM jobs WHERE state = ?", (RUNNING,)).fetchone()
            row = base.execute(
                "SELECT id, verb, question FROM jobs WHERE state = ? ORDER BY number LIMIT 1", (QUEUED,)
            ).fetchone()
            if row is None or running >= limits.at_once:
                return None
            base.execute(
                "UPDATE jobs SET state = ?, started = ?, last = last + 1 WHERE id = ?", (RUNNING, time.time(), row[0])
            )
            job, verb, question = row
            return ClaimedJob(job, verb, question, hold(self.lock_of(job)))  # before anybody can read that it runs

    def lock_of(self, job: str) -> Path:
        """The file that is locked while the job's process lives."""
        return self.folder / f"{job}.lock"

    def name_process(self, job: str, pid: int) -> bool:
        """Whether the job is still wanted: it may have been cancelled before it had a process."""
        with self._writing() as base:
            return base.execute("UPDATE jobs SET pid = ? WHERE id = ? AND state = ?", (pid, job, RUNNING)).rowcount == 1

    # ---- while it runs, and its end ----

    def tell(self, job: str, what: str, done: int, of: int | None) -> None:
        """Keep the latest step of each count: who follows late hears where things are, not how they came there."""
        with self._writing() as base:
            if base.execute("UPDATE jobs SET last = last + 1 WHERE id = ? AND state = ?", (job, RUNNING)).rowcount:
                base.execute(
                    "INSERT INTO progress SELECT ?, ?, ?, ?, last FROM jobs WHERE id = ? "
                    'ON CONFLICT DO UPDATE SET done = excluded.done, "of" = excluded."of", last = excluded.last',
                    (job, what, done, of, job),
                )

    def find(self, job: str, document: bytes) -> None:
        """Keep the best plan so far, as JSON."""
        with self._writing() as base:
            if base.execute("UPDATE jobs SET last = last + 1 WHERE id = ? AND state = ?", (job, RUNNING)).rowcount:
                base.execute(
                    "INSERT INTO best SELECT ?, ?, last FROM jobs WHERE id = ? "
                    "ON CONFLICT DO UPDATE SET document = excluded.document, last = excluded.last",
                    (job, document, job),
                )

    def answer(self, job: str, status: int, command: str, document: bytes) -> bool:
        """Store a job's answer; False where the job has ended before."""
        return self._end(job, DONE, status=status, command=command, document=document)

    def fail(self, job: str, kind: str, message: str) -> bool:
        """What went wrong; False where it has ended before."""
        return self._end(job, FAILED, kind=kind, message=message)

    def cancel(self, job: str) -> int | None:
        """Ends it, whatever it does now. The number of its process, where one has to be ended too."""
        with self._lock:
            if not self._end(job, CANCELLED, kind="Cancelled", message="the job was cancelled."):
                return None
            ((pid,),) = self._rows("SELECT pid FROM jobs WHERE id = ?", job)
        return pid if pid is not None and is_held(self.lock_of(job)) else None

    def _end(self, job: str, state: str, **values: Any) -> bool:
        names = "".join(f", {name} = ?" for name in values)
        query = f"UPDATE jobs SET state = ?, ended = ?, last = last + 1{names} WHERE id = ? AND state IN (?, ?)"
        now = time.time()
        with self._writing() as base:
            if not base.execute(query, (state, now, *values.values(), job, QUEUED, RUNNING)).rowcount:
                return False
            verb, started = base.execute("SELECT verb, started FROM jobs WHERE id = ?", (job,)).fetchone()
            self._count(base, f"{state}:{verb}")
            self._count(base, f"seconds:{verb}", now - (started or now))
        return True

    # ---- what is known ----

    def job(self, job: str) -> Job | None:
        rows = self._rows(f"SELECT {SHOWN} FROM jobs WHERE id = ?", job)
        return Job(*rows[0]) if rows else None

    def document(self, job: str) -> bytes:
        """The document of a job that is done."""
        ((stored,),) = self._rows("SELECT document FROM jobs WHERE id = ?", job)
        return bytes(stored)

    def question(self, job: str) -> bytes:
        """The question of a job, as JSON."""
        ((stored,),) = self._rows("SELECT question FROM jobs WHERE id = ?", job)
        return bytes(stored)

    def steps(self, job: str, after: int = 0) -> Sequence[Step]:
        """The latest step of each count, of those after an event."""
        return [
            Step(*row)
            for row in self._rows(
                'SELECT what, done, "of", last FROM progress WHERE job = ? AND last > ? ORDER BY last', job, after
            )
        ]

    def best(self, job: str, after: int = 0) -> tuple[int, bytes] | None:
        """The best plan so far, if it was found after an event, and the number of the event that says so."""
        rows = self._rows("SELECT last, document FROM best WHERE job = ? AND last > ?", job, after)
        return (rows[0][0], bytes(rows[0][1])) if rows else None

    def states(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        return dict.fromkeys(STATES, 0) | dict(self._rows("SELECT state, count(*) FROM jobs GROUP BY state"))

    def processes(self) -> list[tuple[str, int | None]]:
        """Each job that runs, with the number of its process where that has been written down."""
        return [(job, pid) for job, pid in self._rows("SELECT id, pid FROM jobs WHERE state = ?", RUNNING)]

    # ---- housekeeping ----

    def lose(self, job: str) -> bool:
        """Mark a job as lost: its process has ended without an answer. False where the job has ended before."""
        return self.fail(job, *LOST)

    def tidy(self, limits: JobLimits) -> None:
        """Drops what ended long ago, and says of jobs whose process is gone that they failed."""
        for (job,) in self._rows("SELECT id FROM jobs WHERE state = ?", RUNNING):
            if not is_held(self.lock_of(job)):
                self.lose(job)
        old = self._rows(
            (
                "SELECT id FROM jobs WHERE ended < ? UNION SELECT id FROM (SELECT id FROM jobs WHERE ended IS "
                "NOT NULL ORDER BY ended DESC LIMIT -1 OFFSET ?)"
            ),
            time.time() - limits.kept_seconds,
            limits.kept,
        )
        for (job,) in old:
            with self._writing() as base:
                base.execute("DELETE FROM progress WHERE job = ?", (job,))
                base.execute("DELETE FROM best WHERE job = ?", (job,))
                base.execute("DELETE FROM jobs WHERE id = ?", (job,))
            with suppress(OSError):
                self.lock_of(job).unlink()

    def count(self, name: str, by: float = 1) -> None:
        """Counts something of all workers together, for /metrics."""
        with self._writing() as base:
            self._count(base, name, by)

    def _count(self, base: sqlite3.Connection, name: str, by: float = 1) -> None:
        base.execute(
            "INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value", (name, by)
        )

    def counters(self) -> dict[str, float]:
        return dict(self._rows("SELECT name, value FROM counters ORDER BY name"))
