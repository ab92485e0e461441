"""The runs of a site, kept in a data base: SQLite in a file of the user, or PostgreSQL for a team.

`TONNAGE_RUNS` says which: a path, `sqlite:///runs.db`, or `postgresql://user@host/database` (with
`pip install 'tonnage[postgresql]'`). Without it: `tonnage/runs.db` in the user's data folder.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tonnage.estimate.inputs import Question
from tonnage.estimate.site.cases import Compared
from tonnage.estimate.site.corrections import Chosen, Corrections
from tonnage.estimate.site.tables import COLUMNS, MAKE, MAKE_CHOSEN
from tonnage.kernel import reach
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message
from tonnage.kernel.version import __version__

PLACE = "TONNAGE_RUNS"
SQLITE = "sqlite:///"
SERVERS = ("postgresql://", "postgres://")
PATIENCE = 10  # seconds for others to finish a write, or for a server to answer


class KeptRun(Struct, frozen=True, kw_only=True):
    """A run that was kept. `row`: in the form of docs/rows.md; `compared`: its figures beside the estimates of
    `version`.
    """

    id: str
    day: str
    version: str
    row: dict[str, Any]
    compared: tuple[Compared, ...]


def place() -> str:
    """Where runs are kept: the URL of a server, or the path of a file."""
    given = os.environ.get(PLACE, "")
    if given.startswith(SERVERS):
        return given
    if "://" in given and not given.startswith(SQLITE):
        raise InvalidInput(
            "{place} is a path, {sqlite} or {server}.",
            place=PLACE,
            sqlite=f"{SQLITE}runs.db",
            server="postgresql://user@host/database",
        )
    if given:
        return given.removeprefix(SQLITE)
    folder = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return str(folder / "tonnage" / "runs.db")


def shown_place() -> str:
    """The place without a password."""
    scheme, mark, rest = place().partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else scheme


def kept() -> tuple[KeptRun, ...]:
    """All runs, the oldest first; none where nothing was ever kept."""
    where = place()
    if not where.startswith(SERVERS) and not Path(where).exists():
        return ()
    with _connected(where) as connection:
        rows = _run(connection, f"SELECT {COLUMNS} FROM tonnage_runs ORDER BY day, id").fetchall()
    return tuple(_of_columns(row) for row in rows)


def keep(runs: Iterable[KeptRun]) -> None:
    """Add runs; one of the same id is replaced."""
    where = place()
    with _connected(where) as connection:
        mark = _mark(where)
        for run in runs:
            _run(connection, f"DELETE FROM tonnage_runs WHERE id = {mark}", (run.id,))
            values = (run.id, run.day, run.version, json.dumps(run.row), msgspec.json.encode(run.compared).decode())
            _run(connection, f"INSERT INTO tonnage_runs ({COLUMNS}) VALUES ({', '.join([mark] * 5)})", values)
        connection.commit()


def keep_chosen() -> None:
    """Keep the factors that the runs of this version choose, so that no question has to try them."""
    found = Corrections([one for run in kept() if run.version == __version__ for one in run.compared]).chosen
    where = place()
    with _connected(where) as connection:
        _run(connection, "DELETE FROM tonnage_chosen_factors")
        mark = _mark(where)
        for one in found:
            values = (" ".join(one.quantities), msgspec.json.encode(one).decode())
            _run(connection, f"INSERT INTO tonnage_chosen_factors (quantities, chosen) VALUES ({mark}, {mark})", values)
        connection.commit()


def _chosen() -> tuple[Chosen, ...]:
    with _connected(place()) as connection:
        rows = _run(connection, "SELECT chosen FROM tonnage_chosen_factors").fetchall()
    return tuple(msgspec.json.decode(row[0], type=Chosen) for row in rows)


def remove(identities: Sequence[str]) -> None:
    """Take runs out. InvalidInput where one is not there."""
    known = {run.id for run in kept()}
    for identity in identities:
        if identity not in known:
            from tonnage.kernel.registry import unknown

            raise unknown("run", identity, sorted(known))
    where = place()
    with _connected(where) as connection:
        for identity in identities:
            _run(connection, f"DELETE FROM tonnage_runs WHERE id = {_mark(where)}", (identity,))
        connection.commit()


def corrections(question: Question) -> Corrections:
    """What a question is corrected by. MissingDatum where no runs are kept."""
    if not reach.reads_machine():
        raise InvalidInput(
            Message("{@calibrated} reads the runs of the machine that answers, which its owner has not allowed.")
        )
    runs = kept()
    current = [run for run in runs if run.version == __version__]
    if not runs:
        raise MissingDatum(
            "{@calibrated} needs runs of yours, and {place} has none: keep them with `tonnage reconcile LOG --keep` or "
            "`tonnage calibrate add FILE`.",
            place=shown_place(),
        )
    if len(current) < len(runs):
        raise MissingDatum(
            "{count} of {all} runs were compared with another version of tonnage: `tonnage calibrate compare` compares "
            "them again.",
            count=len(runs) - len(current),
            all=len(runs),
        )
    question.put("calibrated", True, "given", Message("{count} runs of {place}", count=len(runs), place=shown_place()))
    return _known(Corrections([one for run in current for one in run.compared], chosen=_chosen()))


@lru_cache(maxsize=4)
def _known(corrections: Corrections) -> Corrections:
    """Those of the same runs that were asked before, with what they have worked out."""
    return corrections


def _of_columns(columns: Sequence[str]) -> KeptRun:
    identity, day, version, row, compared = columns
    try:
        figures = msgspec.json.decode(compared, type=tuple[Compared, ...])
        return KeptRun(id=identity, day=day, version=version, row=json.loads(row), compared=figures)
    except ValueError as error:
        raise InvalidInput(
            "the run {run} in {place} is damaged: take it out with the data base's own program, and add it again.",
            run=shown(identity),
            place=shown_place(),
        ) from error


def _mark(where: str) -> str:
    """What stands for a value in a statement."""
    return "%s" if where.startswith(SERVERS) else "?"


def _run(connection: Any, statement: str, values: tuple[Any, ...] = ()) -> Any:
    return connection.execute(statement, values)


@contextmanager
def _connected(where: str) -> Iterator[Any]:
    """A connection with the table made. InvalidInput where the data base cannot be opened, or is of another kind."""
    if where.startswith(SERVERS):
        with _server(where) as connection:
            yield connection
        return
    path = Path(where).expanduser()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=PATIENCE)
        try:
            connection.execute(MAKE)
            connection.execute(MAKE_CHOSEN)
            yield connection
        finally:
            connection.close()
    except (OSError, sqlite3.Error) as error:
        raise InvalidInput(
            "the runs of this site cannot be read or kept in {path}: {error}.", path=path, error=error
        ) from error


@contextmanager
def _server(where: str) -> Iterator[Any]:
    try:
        import psycopg
    except ImportError:
        raise MissingDatum(
            "{place}: PostgreSQL needs psycopg, which is not installed: pip install 'tonnage[postgresql]'.", place=PLACE
        ) from None
    try:
        with psycopg.connect(where, connect_timeout=PATIENCE) as connection:
            connection.execute(MAKE)
            connection.execute(MAKE_CHOSEN)
            yield connection
    except psycopg.Error as error:
        raise InvalidInput(
            "{place}: the data base of runs does not answer ({error}).", place=PLACE, error=type(error).__name__
        ) from error
