"""Saved plans: names, each with all its versions."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Raw
from msgspec.json import decode
from msgspec.structs import asdict
from sqlalchemy import Connection, Row, and_, func, select
from sqlalchemy.exc import IntegrityError

from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.message import Message
from tonnage.web.store.conflict import ConflictError
from tonnage.web.store.digest import Digest
from tonnage.web.store.documents import SavedPlan, SavedSummary
from tonnage.web.store.engine import Base
from tonnage.web.store.names import ANY, check_name
from tonnage.web.store.subject import stored_bytes, subject
from tonnage.web.store.tables import PLANS, QUESTIONS, SUMMARY, VERSIONS

MAX_NAMES = 10_000
MAX_SHOWN = 1000
NOT_KNOWN = 4  # exit status of the command line
MAX_BYTES = 256_000_000  # of all versions together, where the owner of the server says nothing else


class Store:
    """One process's view of the data base. `most_bytes`: how much all versions may count together."""

    def __init__(self, base: Base, most_bytes: int = MAX_BYTES):
        self.base, self.most_bytes = base, most_bytes

    def close(self) -> None:
        self.base.close()

    def save(self, name: str, verb: str, question: str, digest: Digest, expected: int | None = None) -> SavedPlan:
        """A new version. `expected`: the latest version that who saves has seen, None or 0 for a new name.
        ConflictError where it is another; InvalidInput where all versions together would be too large.
        """
        try:
            with self.base.writing() as connection:
                return self._saved(connection, name, verb, question, digest, expected)
        except IntegrityError:  # another has saved the same new name at the same moment
            raise _saved_just_now(name) from None

    def save_all(
        self, saves: Sequence[tuple[str, str, str, Digest, int | None]]
    ) -> list[SavedPlan | ConflictError | TonnageError]:
        """As `save`, several in one transaction: the version of each, or why that one is not saved."""
        outcomes: list[SavedPlan | ConflictError | TonnageError] = []
        with self.base.writing() as connection:
            for save in saves:
                try:
                    with connection.begin_nested():
                        outcomes.append(self._saved(connection, *save))
                except IntegrityError:
                    outcomes.append(_saved_just_now(save[0]))
                except (ConflictError, TonnageError) as error:
                    outcomes.append(error)
        return outcomes

    def _saved(
        self, connection: Connection, name: str, verb: str, question: str, digest: Digest, expected: int | None
    ) -> SavedPlan:
        check_name(name)
        size = stored_bytes(question, digest.command)
        row = _locked(connection, name)
        _check_expected(row, name, expected)
        self._check_room(connection, size)
        plan, version = _next_version(connection, row, name, size)
        values: dict[str, Any] = (
            {"saved": _now(), "verb": verb, "bytes": size} | subject(decode(question)) | asdict(digest)
        )
        inserted = connection.execute(VERSIONS.insert().values(plan=plan, version=version, **_columns(values)))
        assert inserted.inserted_primary_key is not None
        connection.execute(QUESTIONS.insert().values(version=inserted.inserted_primary_key[0], question=question))
        return SavedPlan(name=name, version=version, deleted=False, question=Raw(question.encode()), **values)

    def fill(self, *figures: tuple[str, int, Digest]) -> None:
        """Write down the figures of versions that were saved without them: of each its name, its number and what is
        kept of its answer.
        """
        with self.base.writing() as connection:
            for name, version, digest in figures:
                plan = select(PLANS.c.id).where(PLANS.c.name == name).scalar_subquery()
                where = and_(VERSIONS.c.plan == plan, VERSIONS.c.version == version, VERSIONS.c.answered.is_(False))
                values = {field: value for field, value in asdict(digest).items() if field != "command"}
                connection.execute(VERSIONS.update().where(where).values(**_columns(values)))

    def latest(self, name: str) -> SavedPlan | None:
        """The last version of a name that is not deleted."""
        return self._whole(
            and_(PLANS.c.name == name, VERSIONS.c.version == PLANS.c.version, PLANS.c.deleted.is_(False))
        )

    def version(self, name: str, version: int) -> SavedPlan | None:
        """One version of a name, deleted or not."""
        return self._whole(and_(PLANS.c.name == name, VERSIONS.c.version == version))

    def every(self, after: str = "", limit: int = MAX_SHOWN) -> list[SavedSummary]:
        """The last version of each name, by name, of those after one."""
        where = and_(PLANS.c.name > after, VERSIONS.c.version == PLANS.c.version, PLANS.c.deleted.is_(False))
        return self._summaries(where, limit, PLANS.c.name)

    def names(self) -> list[str]:
        """The names that are not deleted, as many as are shown."""
        query = select(PLANS.c.name).where(PLANS.c.deleted.is_(False)).order_by(PLANS.c.name).limit(MAX_SHOWN)
        with self.base.reading() as connection:
            return [row.name for row in connection.execute(query)]

    def history(self, name: str, before: int | None = None, limit: int = MAX_SHOWN) -> list[SavedSummary]:
        """All versions of a name, deleted or not, the latest first."""
        where = PLANS.c.name == name if before is None else and_(PLANS.c.name == name, VERSIONS.c.version < before)
        return self._summaries(where, limit, VERSIONS.c.version.desc())

    def delete(self, name: str, expected: int | None = None, *, history: bool = False) -> bool:
        """Whether there was such a name. Its versions stay, unless the `history` is to go too."""
        with self.base.writing() as connection:
            row = _locked(connection, name)
            if row is None or (row.deleted and not history):
                return False
            if expected not in (None, ANY, row.version):
                raise _changed(name, row.version, expected, deletes=True)
            if history:
                numbers = select(VERSIONS.c.id).where(VERSIONS.c.plan == row.id)
                connection.execute(QUESTIONS.delete().where(QUESTIONS.c.version.in_(numbers)))
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

    def _check_room(self, connection: Connection, size: int) -> None:
        """InvalidInput where a version of this size has no room. In PostgreSQL several who save at the same moment
        may each take what is left.
        """
        held = int(connection.execute(select(func.coalesce(func.sum(PLANS.c.bytes), 0))).scalar_one())
        if held + size > self.most_bytes:
            raise InvalidInput(
                "saved plans take {held:,.2f} of {most_bytes:,.2f} MB, and this one needs {size:,.2f}: "
                "delete some, with their history, or have the server started with a larger --store-limit.",
                held=held / 1e6,
                most_bytes=self.most_bytes / 1e6,
                size=size / 1e6,
            )

    def _summaries(self, where: Any, limit: int, order: Any) -> list[SavedSummary]:
        """At most `limit` versions, without their questions."""
        query = select(PLANS.c.name, VERSIONS.c.version, PLANS.c.deleted, VERSIONS.c.answered, *_listed())
        query = query.join(VERSIONS, VERSIONS.c.plan == PLANS.c.id).where(where).order_by(order).limit(limit)
        with self.base.reading() as connection:
            return [SavedSummary(**_shown(row)) for row in connection.execute(query)]

    def _whole(self, where: Any) -> SavedPlan | None:
        query = select(
            PLANS.c.name,
            VERSIONS.c.version,
            PLANS.c.deleted,
            VERSIONS.c.answered,
            *_listed(),
            VERSIONS.c.command,
            QUESTIONS.c.question,
        )
        query = query.join(VERSIONS, VERSIONS.c.plan == PLANS.c.id).join(
            QUESTIONS, QUESTIONS.c.version == VERSIONS.c.id
        )
        with self.base.reading() as connection:
            row = connection.execute(query.where(where)).one_or_none()
        return None if row is None else SavedPlan(**(_shown(row) | {"question": Raw(row.question.encode())}))


def _listed() -> list[Any]:
    return [VERSIONS.c[name] for name in SUMMARY]


def _shown(row: Any) -> dict[str, Any]:
    """Columns as fields: without figures there is no status and no answer."""
    columns = dict(row._mapping)
    return columns if columns.pop("answered") else columns | {"status": None, "answer": None}


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    """Fields as columns. An answer that is not there yet is "not known" to a tonnage that does not look at
    `answered`.
    """
    if values["status"] is not None:
        return values | {"answered": True}
    return values | {"answered": False, "status": NOT_KNOWN, "answer": ""}


def _saved_just_now(name: str) -> ConflictError:
    return ConflictError(
        1, Message("{name} was saved by somebody else just now: read it, and save again.", name=shown(name))
    )


def _locked(connection: Connection, name: str) -> Row[Any] | None:
    """The name, which nobody else changes before this transaction ends."""
    return connection.execute(select(PLANS).where(PLANS.c.name == name).with_for_update()).one_or_none()


def _check_expected(row: Row[Any] | None, name: str, expected: int | None) -> None:
    version = 0 if row is None or row.deleted else row.version
    if expected == ANY:
        if version:
            return
        raise ConflictError(
            0,
            Message(
                "{name} is not saved, and If-Match: * is of one that is: leave it out to save a new name.",
                name=shown(name),
            ),
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
            Message(
                "{name} is saved already: give version {version} to save a new one over it, or another name.",
                name=shown(name),
                version=version,
            ),
        )
    raise _changed(name, version, expected)


def _changed(name: str, version: int, expected: int, *, deletes: bool = False) -> ConflictError:
    """What was to be done is done once more by who has read the version that is there now."""
    now = Message("is at version {version} now", version=version) if version else "is not saved"
    if deletes:
        return ConflictError(
            version,
            Message(
                "{name} {now}, and version {expected} was given: read it, and delete again.",
                name=shown(name),
                now=now,
                expected=expected,
            ),
        )
    return ConflictError(
        version,
        Message(
            "{name} {now}, and version {expected} was given: read it, and save again.",
            name=shown(name),
            now=now,
            expected=expected,
        ),
    )


def _next_version(connection: Connection, row: Row[Any] | None, name: str, size: int) -> tuple[int, int]:
    """The number of the plan, and the version that is written now. A name that was deleted goes on where it ended."""
    if row is not None:
        connection.execute(
            PLANS.update()
            .where(PLANS.c.id == row.id)
            .values(version=row.version + 1, deleted=False, bytes=PLANS.c.bytes + size)
        )
        return row.id, row.version + 1
    if connection.execute(select(func.count()).select_from(PLANS)).scalar_one() >= MAX_NAMES:
        raise InvalidInput(
            "{most_names:,} names are saved, which is the most: delete some, with their history.", most_names=MAX_NAMES
        )
    inserted = connection.execute(PLANS.insert().values(name=name, version=1, deleted=False, bytes=size))
    assert inserted.inserted_primary_key is not None
    return inserted.inserted_primary_key[0], 1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
