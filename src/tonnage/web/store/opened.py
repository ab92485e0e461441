"""The data base of saved plans of one worker: opened when it is first needed, made when something is first saved."""

import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

if TYPE_CHECKING:  # SQLAlchemy is read when something is saved
    from tonnage.web.store.saved import Store

NONE = "none"
REFUSED = (
    "this server saves no plans: its owner starts it with --store sqlite:///plans.db, or with the URL of a "
    "PostgreSQL data base, where it is to do so."
)


class Opened:
    """`text`: a URL; "none"; or None for the user's own file. `own`: whether the server answers its user alone: of
    strangers nothing is kept unless its owner has said where. `most_bytes`: how much is kept.
    """

    def __init__(self, text: str | None, *, own: bool, most_bytes: int | None = None):
        self._most_bytes = most_bytes
        self.url = (default_url() if own else NONE) if text is None else text
        self._is_default = text is None
        self._lock = Lock()
        self._store: Store | None = None

    @property
    def saves(self) -> bool:
        """Whether anything is saved here."""
        return self.url != NONE

    def prepare(self) -> str | None:
        """Before the server starts: InvalidInput where its plans could not be read or saved, with the reason. Tables
        of an older tonnage are brought to this version; what the backup of them is called, where that was done.
        """
        if not self.saves:
            return None
        from tonnage.web.store.conflict import StoreError
        from tonnage.web.store.engine import Base, store_url
        from tonnage.web.store.file_checks import check_file

        url = store_url(self.url)
        path = Path(url.database or "") if url.get_backend_name() == "sqlite" else None
        try:
            if path is not None:
                check_file(path, thoroughly=True)
                if not path.exists():
                    if not (self._is_default or path.parent.is_dir()):
                        raise StoreError(Message("there is no folder {parent}.", parent=path.parent))
                    return None
            base = Base(url)
        except StoreError as error:
            where = "" if path is None else f" {path}:"
            raise InvalidInput("--store:{where} {error}", where=where, error=error) from error
        base.close()
        return base.backup

    def for_saving(self) -> "Store":
        """The store; InvalidInput where nothing is saved here."""
        if not self.saves:
            raise InvalidInput(REFUSED)
        with self._lock:
            if self._store is None:
                from tonnage.web.store.engine import Base, store_url
                from tonnage.web.store.saved import MAX_BYTES, Store

                if self._is_default:
                    _file(self.url).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._store = Store(Base(store_url(self.url)), self._most_bytes or MAX_BYTES)
            return self._store

    def for_reading(self) -> "Store | None":
        """The store; None where nothing was ever saved: reading leaves nothing behind."""
        if not self.saves or (self.url.startswith("sqlite:///") and not _file(self.url).exists()):
            return None
        return self.for_saving()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()


def default_url() -> str:
    """The file of this user."""
    folder = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return f"sqlite:///{folder / 'tonnage' / 'plans.db'}"


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///").partition("?")[0])
