"""Saved plans: names, each with all its versions."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Raw
from msgspec.structs import asdict
from sqlalchemy import Connection, Row, and_, func, select
from sqlalchemy.exc import IntegrityError

from tonnage.errors import InvalidInput, shown
from tonnage.web.store.conflict import ConflictError
from tonnage.web.store.digest import Digest
from tonnage.web.store.documents import SavedPlan
from tonnage.web.store.engine import Base
from tonnage.web.store.names import ANY, check_name
from tonnage.web.store.tables import FIGURES, PLANS, VERSIONS

MOST_NAMES = 10_000
MOST_SHOWN = 1000


class Store:
    """One process's view of the data base."""

    def __init__(self, base: Base):
        self.base = base

    def close(self) -> None:
        self.base.close()

    def save(self, name: str, verb: str, question: str, digest: Digest, expected: int | None = None) -> SavedPlan:
        """A new version. `expected`: the latest version that who saves has seen, None or 0 for a new name. ConflictError where it is another."""
        check_name(name)
        try:
            with self.base.writing() as connection:
                row = _locked(connection, name)
                _check_expected(row, name, expected)
                plan, version = _next_version(connection, row, name)
                values = {"saved": _now(), "verb": verb, "question": question} | asdict(digest)
                connection.execute(VERSIONS.insert().values(plan=plan, version=version, **values))
        except IntegrityError:  # another has saved the same new name at the same moment
            raise ConflictError(
                1, f"{shown(name)} was saved by somebody else just now: read it, and save again."
            ) from None
        return SavedPlan(name=name, version=version, deleted=False, **(values | {"question": Raw(question.encode())}))

    def latest(self, name: str) -> SavedPlan | None:
        """The last version of a name that is not deleted."""
        rows = self._versions(
            and_(PLANS.c.name == name, VERSIONS.c.version == PLANS.c.version, PLANS.c.deleted.is_(False)), 1
        )
        return rows[0] if rows else None

    def every(self, after: str = "", limit: int = MOST_SHOWN) -> list[SavedPlan]:
        """The last version of each name, by name, of those after one."""
        where = and_(PLANS.c.name > after, VERSIONS.c.version == PLANS.c.version, PLANS.c.deleted.is_(False))
        return self._versions(where, limit, PLANS.c.name)

    def names(self) -> list[str]:
        """Those that are not deleted, as many as are shown."""
        query = select(PLANS.c.name).where(PLANS.c.deleted.is_(False)).order_by(PLANS.c.name).limit(MOST_SHOWN)
        with self.base.reading() as connection:
            return [row.name for row in connection.execute(query)]

    def history(self, name: str, before: int | None = None, limit: int = MOST_SHOWN) -> list[SavedPlan]:
        """All versions of a name, deleted or not, the latest first."""
        where = PLANS.c.name == name if before is None else and_(PLANS.c.name == name, VERSIONS.c.version < before)
        return self._versions(where, limit, VERSIONS.c.version.desc())

    def delete(self, name: str, expected: int | None = None, *, history: bool = False) -> bool:
        """Whether there was such a name. Its versions stay, unless the `history` is to go too."""
        with self.base.writing() as connection:
            row = _locked(connection, name)
            if row is None or (row.deleted and not history):
                return False
            if expected not in (None, ANY, row.version):
                raise _changed(name, row.version, expected, deletes=True)
            if history:
                connection.execute(VERSIONS.delete().where(VERSIONS.c.plan == row.id))
                connection.execute(PLANS.delete().where(PLANS.c.id == row.id))
            else:
                connection.execute(PLANS.update().where(PLANS.c.id == row.id).values(deleted=True))
        return True

    def counts(self) -> tuple[int, int]:
        """Names that are not deleted, and versions of all."""
        with self.base.reading() as connection:
            names = connection.execute(
                select(func.count()).select_from(PLANS).where(PLANS.c.deleted.is_(False))
            ).scalar_one()
            return names, connection.execute(select(func.count()).select_from(VERSIONS)).scalar_one()

    def _versions(self, where: Any, limit: int, order: Any = None) -> list[SavedPlan]:
        columns = [VERSIONS.c[name] for name in FIGURES]
        query = select(PLANS.c.name, VERSIONS.c.version, PLANS.c.deleted, *columns).join(
            VERSIONS, VERSIONS.c.plan == PLANS.c.id
        )
        with self.base.reading() as connection:
            rows = connection.execute(query.where(where).order_by(order).limit(min(limit, MOST_SHOWN)))
            return [SavedPlan(**(dict(row._mapping) | {"question": Raw(row.question.encode())})) for row in rows]


def _locked(connection: Connection, name: str) -> Row[Any] | None:
    """The name, which nobody else changes before this transaction ends."""
    return connection.execute(select(PLANS).where(PLANS.c.name == name).with_for_update()).one_or_none()


def _check_expected(row: Row[Any] | None, name: str, expected: int | None) -> None:
    version = 0 if row is None or row.deleted else row.version
    if expected == ANY:
        if version:
            return
        raise ConflictError(
            0, f"{shown(name)} is not saved, and If-Match: * is of one that is: leave it out to save a new name."
        )
    if (
        expected == version
        or (expected is None and version == 0)
        or (row is not None and row.deleted and expected == row.version)
    ):
        return
    if expected is None:
        raise ConflictError(
            version,
            f"{shown(name)} is saved already: give version {version} to save a new one over it, or another name.",
        )
    raise _changed(name, version, expected)


def _changed(name: str, version: int, expected: int, *, deletes: bool = False) -> ConflictError:
    """What was to be done is done once more by who has read the version that is there now."""
    now = f"is at version {version} now" if version else "is not saved"
    if deletes:
        return ConflictError(
            version, f"{shown(name)} {now}, and version {expected} was given: read it, and delete again."
        )
    return ConflictError(version, f"{shown(name)} {now}, and version {expected} was given: read it, and save again.")


def _next_version(connection: Connection, row: Row[Any] | None, name: str) -> tuple[int, int]:
    """The number of the plan, and the version that is written now. A name that was deleted goes on where it ended."""
    if row is not None:
        connection.execute(PLANS.update().where(PLANS.c.id == row.id).values(version=row.version + 1, deleted=False))
        return row.id, row.version + 1
    if connection.execute(select(func.count()).select_from(PLANS)).scalar_one() >= MOST_NAMES:
        raise InvalidInput(f"{MOST_NAMES:,} names are saved, which is the most: delete some, with their history.")
    made = connection.execute(PLANS.insert().values(name=name, version=1, deleted=False))
    assert made.inserted_primary_key is not None
    return made.inserted_primary_key[0], 1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
