"""The data base of saved plans of one worker: opened when it is first needed, made when something is first saved."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from litestar import Litestar

from tonnage.errors import InvalidInput

if TYPE_CHECKING:  # SQLAlchemy is read when something is saved
    from tonnage.web.store.saved import Store

NONE = "none"
REFUSED = "this server saves no plans: its owner starts it with --store sqlite:///plans.db, or with the URL of a PostgreSQL data base, where it is to do so."


class Opened:
    """`given`: a URL; "none"; or None for the user's own file. `own`: whether the server answers its user alone: of strangers nothing is kept
    unless its owner has said where."""

    def __init__(self, given: str | None, *, own: bool):
        self.url = (default_url() if own else NONE) if given is None else given
        self._is_default = given is None
        self._lock = Lock()
        self._store: Store | None = None

    @property
    def saves(self) -> bool:
        """Whether anything is saved here."""
        return self.url != NONE

    def check(self) -> None:
        """InvalidInput where the URL is none."""
        if self.saves:
            from tonnage.web.store.engine import store_url

            store_url(self.url)

    def for_saving(self) -> "Store":
        """The store; InvalidInput where nothing is saved here."""
        if not self.saves:
            raise InvalidInput(REFUSED)
        with self._lock:
            if self._store is None:
                from tonnage.web.store.engine import Base, store_url
                from tonnage.web.store.saved import Store

                if self._is_default:
                    _file(self.url).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._store = Store(Base(store_url(self.url)))
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


@asynccontextmanager
async def store_opened(app: Litestar) -> AsyncIterator[None]:
    """From the start of a worker to its end."""
    settings = app.state.settings
    app.state.store = Opened(settings.store, own=settings.loopback)
    try:
        yield
    finally:
        app.state.store.close()
