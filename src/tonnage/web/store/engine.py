"""The data base of saved plans: SQLite in a file, or PostgreSQL. What was acknowledged is on the disk."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError

from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.message import Message
from tonnage.web.sqlite import close_to_others, make_private, write_ahead
from tonnage.web.store.backup import back_up
from tonnage.web.store.conflict import StoreError
from tonnage.web.store.file_checks import check_file, check_version
from tonnage.web.store.migrations import migrate
from tonnage.web.store.tables import SCHEMA, TABLES, VERSION

PATIENCE = 10  # seconds for others to finish a write, or for a server to answer
SERVED = ("postgresql", "postgres", "postgresql+psycopg")
FILE, SERVER = "sqlite:///plans.db", "postgresql://user@host/database"
LOCK = 0x746F6E6E616765  # of PostgreSQL, while tables are made: one who makes them at a time


def store_url(text: str) -> URL:
    """The data base that a text names. InvalidInput where it names none; the text may hold a password, and is not
    repeated.
    """
    try:
        url = make_url(text)
    except ArgumentError:
        raise InvalidInput(
            "{@store} is the URL of a data base: {file} or {server}.", file=FILE, server=SERVER
        ) from None
    if url.drivername in SERVED:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise MissingDatum(
                Message(
                    "{@store}: PostgreSQL needs psycopg, which is not installed: pip install 'tonnage[postgresql]'."
                )
            ) from None
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise InvalidInput(
            "{@store} is SQLite or PostgreSQL: {file} or {server}. Got {drivername}.",
            file=FILE,
            server=SERVER,
            drivername=url.drivername,
        )
    if url.database in (None, "", ":memory:"):
        raise InvalidInput(Message("{@store}: plans are saved in a file, which all workers read: sqlite:///plans.db."))
    return url


class Base:
    """One process's connections, with the tables made or brought to this version. Every reading and every writing is
    one transaction.

    `backup`: what the copy of older tables is called, where this has brought them to this version. StoreError where the
    data base is of a newer tonnage, damaged, or of another program.
    """

    def __init__(self, url: URL):
        self.backup: str | None = None
        self._url = url
        if url.get_backend_name() == "sqlite":
            path = Path(url.database or "")
            check_file(path)
            with _said():
                make_private(path)
        self.engine = _engine(url)
        self._writer = self.engine.execution_options(writes=True)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with _said(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """What is done inside is on the disk when this ends; or none of it is."""
        with _said(), self._writer.begin() as connection:
            yield connection

    def _prepare(self) -> None:
        with self.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
            SCHEMA.create(connection, checkfirst=True)
            version = connection.execute(select(SCHEMA.c.version)).scalar()
            if version is None:
                TABLES.create_all(connection)
                connection.execute(SCHEMA.insert().values(version=VERSION))
                return
            check_version(version)
            if version < VERSION:
                self.backup = back_up(self._url, connection, version)
                migrate(connection, version, VERSION)
        if self.backup and self._url.get_backend_name() == "sqlite":
            close_to_others(Path(self._url.database or ""))  # version 1 was made as the umask had it


@contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except IntegrityError:  # says something of what was written, not of the data base
        raise
    except OSError as error:
        raise StoreError(
            Message("the file of saved plans cannot be opened: {strerror}.", strerror=error.strerror)
        ) from error
    except SQLAlchemyError as error:
        origin = getattr(error, "orig", None) or error
        raise StoreError(
            Message("the data base of saved plans does not answer ({type}).", type=type(origin).__name__)
        ) from error


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": PATIENCE})
        event.listen(engine, "connect", _begin_sqlite)
        event.listen(engine, "begin", _begin_transaction)
        return engine
    options = f"-c synchronous_commit=on -c lock_timeout={PATIENCE}s -c statement_timeout={PATIENCE}s"
    return create_engine(
        url,
        pool_size=2,
        max_overflow=6,
        pool_pre_ping=True,
        connect_args={"connect_timeout": PATIENCE, "options": options},
    )


def _begin_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where _begin_transaction says so
    # a writer does not keep readers waiting, and a commit is on the disk before it is acknowledged
    write_ahead(connection, PATIENCE)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_transaction(connection: Connection) -> None:
    """One that writes takes its turn at its beginning: to wait later, after having read, would be a deadlock."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
