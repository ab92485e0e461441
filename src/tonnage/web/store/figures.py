"""Figures of plans that were saved while all processes that answer were busy: they are computed afterwards, one plan
after the other.
"""

import asyncio
import logging
from threading import Event
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
            name, version = next(iter(self._waiting))
            try:
                await self._fill(name, version)
            except StoreError as error:
                _log.error("figures of a saved plan: %s", error)
            except Exception:  # noqa: BLE001 - of one plan: the others go on
                _log.exception("figures of a saved plan")
            del self._waiting[name, version]

    async def _fill(self, name: str, version: int) -> None:
        store: Store = await asyncio.to_thread(self._opened.for_saving)
        plan = await asyncio.to_thread(store.version, name, version)
        if plan is not None and plan.status is None:
            figures = await self._digest(plan)
            await asyncio.to_thread(store.fill, name, version, figures)

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
