"""One thread of a worker writes all that is saved in it: whoever comes while it writes is written by the next
transaction, all of them by one. A commit waits for the disk, and many commits would wait for each other.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tonnage.web.store.digest import Digest
from tonnage.web.store.documents import SavedPlan
from tonnage.web.store.opened import Opened

MOST = 100  # saves of one transaction


class Save(NamedTuple):
    """What is saved: as `Store.save` takes it."""

    name: str
    verb: str
    question: str
    digest: Digest
    expected: int | None


class Writer:
    """Writes saves in the order in which they come."""

    def __init__(self, opened: Opened):
        self._opened = opened
        self._thread = ThreadPoolExecutor(1, "tonnage-store")
        self._waiting: list[tuple[Save, asyncio.Future[SavedPlan]]] = []
        self._task: asyncio.Task[None] | None = None

    async def save(self, save: Save) -> SavedPlan:
        """The version, when it is on the disk. Raises what `Store.save` raises."""
        loop = asyncio.get_running_loop()
        saved: asyncio.Future[SavedPlan] = loop.create_future()
        self._waiting.append((save, saved))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())
        return await saved

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            outcomes = await loop.run_in_executor(self._thread, self._written, [save for save, _ in batch])
            for (_, saved), outcome in zip(batch, outcomes, strict=True):
                if saved.done():  # who saved has left
                    continue
                if isinstance(outcome, Exception):
                    saved.set_exception(outcome)
                else:
                    saved.set_result(outcome)

    def _written(self, saves: Sequence[Save]) -> "Sequence[SavedPlan | Exception]":
        try:
            return self._opened.for_saving().save_all(saves)
        except Exception as error:  # noqa: BLE001 - whoever saves is told
            return [error] * len(saves)

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=True)
