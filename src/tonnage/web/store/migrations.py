"""Steps that bring the tables of saved plans from one version to the next. A step is never changed: data bases of its
version may be anywhere.

Each step names its tables and columns itself, and not through tables.py, which has those of today. All steps of a data
base are one transaction,
after a backup: either it is at today's version afterwards, or it is as it was.
"""

from collections.abc import Callable
from json import loads
from typing import Any

from sqlalchemy import Connection, text

from tonnage.web.store.conflict import StoreError
from tonnage.web.store.subject import stored_bytes, subject

CREATE_QUESTIONS = """
CREATE TABLE tonnage_plan_questions (
  version INTEGER NOT NULL PRIMARY KEY REFERENCES tonnage_plan_versions (id) ON DELETE CASCADE,
  question TEXT NOT NULL)
"""
ROWS = 100  # read at a time: each may hold a question of a megabyte
SQLITE_NEEDED = (3, 35)  # since then SQLite drops columns


def migrate(connection: Connection, version: int, latest: int) -> None:
    """Bring tables of `version` to the `latest`. The caller has made a backup, and nobody else writes."""
    for step in range(version, latest):
        STEPS[step](connection)
    connection.execute(text("UPDATE tonnage_schema SET version = :version"), {"version": latest})


def _from_1(connection: Connection) -> None:
    """Questions get a table of their own, which lists do not read; versions say what they are about, how large they
    are and whether their figures are there; plans say how large they are.
    """
    dialect = connection.dialect
    if dialect.name == "sqlite" and dialect.server_version_info < SQLITE_NEEDED:  # type: ignore[operator]
        raise StoreError("bringing it to this tonnage's version needs SQLite 3.35 or newer.")
    for statement in (
        "ALTER TABLE tonnage_plans ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE tonnage_plan_versions ADD COLUMN answered BOOLEAN NOT NULL DEFAULT true",
        "ALTER TABLE tonnage_plan_versions ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE tonnage_plan_versions ADD COLUMN model VARCHAR(200)",
        "ALTER TABLE tonnage_plan_versions ADD COLUMN machine VARCHAR(200)",
        "ALTER TABLE tonnage_plan_versions ADD COLUMN method VARCHAR(200)",
        CREATE_QUESTIONS,
        "INSERT INTO tonnage_plan_questions (version, question) SELECT id, question FROM tonnage_plan_versions",
    ):
        connection.execute(text(statement))
    _describe_versions(connection)
    connection.execute(text("ALTER TABLE tonnage_plan_versions DROP COLUMN question"))
    sums = "(SELECT coalesce(sum(v.bytes), 0) FROM tonnage_plan_versions v WHERE v.plan = tonnage_plans.id)"
    connection.execute(text(f"UPDATE tonnage_plans SET bytes = {sums}"))


def _describe_versions(connection: Connection) -> None:
    query = text("SELECT id, command, question FROM tonnage_plan_versions WHERE id > :last ORDER BY id LIMIT :most")
    update = text(
        "UPDATE tonnage_plan_versions SET bytes = :bytes, model = :model, machine = :machine, method = "
        ":method WHERE id = :id"
    )
    last = -1
    while rows := connection.execute(query, {"last": last, "most": ROWS}).all():
        connection.execute(update, [_described(*row) for row in rows])
        last = rows[-1].id


def _described(number: int, command: str, question: str) -> dict[str, Any]:
    try:
        parsed = loads(question)
    except ValueError:
        parsed = None
    about = subject(parsed if isinstance(parsed, dict) else {})
    return {"id": number, "bytes": stored_bytes(question, command), **about}


STEPS: dict[int, Callable[[Connection], None]] = {1: _from_1}
