"""Figures of plans that were saved while all processes that answer were busy: they are computed afterwards, one plan
after the other.
"""

import asyncio
import logging
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from tonnage.web.answer import EncodedAnswer, Refusal
from tonnage.web.questions import is_search
from tonnage.web.state import Running
from tonnage.web.store.conflict import StoreError
from tonnage.web.store.digest import Digest, digest, refused
from tonnage.web.store.documents import SavedPlan
from tonnage.web.store.opened import Opened

if TYPE_CHECKING:  # SQLAlchemy is read when something is saved
    from tonnage.web.store.saved import Store

MAX_WAITING = 1000  # versions; of others the figures are computed when somebody reads them
RETRY_SECONDS = 0.25  # seconds until a busy server is asked again
BUSY = 503
# Figures that are written together: each transaction waits for the disk, and keeps whoever saves a plan waiting.
TOGETHER, TOGETHER_SECONDS = 32, 0.25
_log = logging.getLogger("tonnage.web")


def digest_of(verb: str, answer: EncodedAnswer) -> Digest:
    """What is kept of an answer."""
    return digest(verb, msgspec.json.decode(answer.body), answer.status, unquote(answer.command))


class Figures:
    """Computes the figures of saved plans in one worker. What still waits when it ends is asked for again by
    whoever reads it.
    """

    def __init__(self, running: Running, opened: Opened):
        self._running, self._opened = running, opened
        self._waiting: dict[tuple[str, int], None] = {}
        self._task: asyncio.Task[None] | None = None

    def compute(self, name: str, version: int) -> None:
        """Have the figures of a version computed soon, where it does not wait already."""
        if len(self._waiting) < MAX_WAITING:
            self._waiting.setdefault((name, version))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            found: list[tuple[str, int, Digest]] = []
            until = monotonic() + TOGETHER_SECONDS
            for name, version in list(self._waiting)[:TOGETHER]:
                try:
                    found += await self._found(name, version)
                except StoreError as error:
                    _log.error("figures of a saved plan: %s", error)
                except Exception:  # noqa: BLE001 - of one plan: the others go on
                    _log.exception("figures of a saved plan")
                del self._waiting[name, version]
                if monotonic() > until:
                    break
            try:
                await asyncio.to_thread(lambda: self._opened.for_saving().fill(*found))  # noqa: B023 - awaited at once
            except StoreError as error:
                _log.error("figures of saved plans: %s", error)

    async def _found(self, name: str, version: int) -> list[tuple[str, int, Digest]]:
        """The figures of a version; none where it has them, or is gone."""
        store: Store = await asyncio.to_thread(self._opened.for_saving)
        plan = await asyncio.to_thread(store.version, name, version)
        return [(name, version, await self._digest(plan))] if plan is not None and plan.status is None else []

    async def _digest(self, plan: SavedPlan) -> Digest:
        question: dict[str, Any] = msgspec.json.decode(plan.question)
        search = is_search(plan.verb, question)
        while True:
            try:
                return digest_of(plan.verb, await self._running.answered(plan.verb, question, search)(Event()))
            except Refusal as refusal:
                if refusal.code != BUSY:
                    return refused(plan.command, refusal.message)
            await asyncio.sleep(RETRY_SECONDS)
