"""What the requests of one server process share."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from threading import Event
from typing import Any

from litestar import Litestar

from tonnage.kernel.message import Message
from tonnage.verbs.answered import FULL
from tonnage.web.answer import EncodedAnswer, Refusal
from tonnage.web.process.pool import Pool
from tonnage.web.settings import Settings
from tonnage.web.wire.answer_cache import AnswerCache


class Running:
    """Two groups of processes, so that searches do not keep others waiting; the answers of a short while ago."""

    def __init__(self, settings: Settings):
        self.limits = limits = settings.limits
        self.kept = AnswerCache(limits.kept_bytes, limits.kept_seconds)
        quick = max(1, (os.cpu_count() or 1) // settings.workers)
        self._quick = Pool(quick, limits.quick_seconds, settings.reach, limits.answer_memory)
        self._searches = Pool(limits.searches_at_once, limits.answer_seconds, settings.reach, limits.answer_memory)
        self._now = 0
        self._starting: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start the processes, so that the first who asks does not wait for them."""
        for _ in range(self._quick.size):
            task = asyncio.create_task(self._started())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _started(self) -> None:
        with suppress(Refusal):  # who asks then is told
            await self._quick.answered("rules", {"names": ["A6"]}, Event())

    def answered(
        self, verb: str, question: Mapping[str, Any], search: bool, detail: str = FULL
    ) -> Callable[[Event], Awaitable[EncodedAnswer]]:
        """What answers, until nobody waits any more; Refusal where too many wait already."""

        async def answer(left: Event) -> EncodedAnswer:
            if self._now >= self.limits.at_once:
                raise Refusal(
                    503,
                    "Busy",
                    Message("{now} questions are being answered: ask again in a moment.", now=self._now),
                    {"Retry-After": "1"},
                )
            pool = self._pool(search)
            self._now += 1
            try:
                return await pool.answered(verb, question, left, detail)
            finally:
                self._now -= 1

        return answer

    def _pool(self, search: bool) -> Pool:
        return self._searches if search else self._quick

    async def close(self) -> None:
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*(pool.close() for pool in (self._quick, self._searches)))


@asynccontextmanager
async def running(app: Litestar) -> AsyncIterator[None]:
    """From the start of the server process to its end."""
    app.state.running = Running(app.state.settings)
    app.state.running.start()
    try:
        yield
    finally:
        await app.state.running.close()
