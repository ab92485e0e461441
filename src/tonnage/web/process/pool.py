"""Questions are answered in processes beside the server: one that takes too long, or more memory than it may, is
ended without harm to others.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import Empty, LifoQueue
from threading import Event
from typing import Any

from tonnage.kernel.message import Message
from tonnage.kernel.reach import Reach
from tonnage.verbs.answered import FULL
from tonnage.web.answer import EncodedAnswer, Refusal
from tonnage.web.process.worker import work

LOOK = 0.05  # seconds between looks whether the client has left
WAIT = 30  # seconds for a process that is free
GRACE = 0.5  # seconds that an answer may still take when its client has left
RENEWED = 10_000  # answers after which a process is replaced, so that none grows without end


class Worker:
    """One process, and the line to it."""

    def __init__(self, within: Reach, memory_bytes: int):
        context = multiprocessing.get_context(_method())
        self.line: Connection
        self.line, theirs = context.Pipe()
        self.answers = 0
        self.process = context.Process(  # type: ignore[attr-defined]
            target=work, args=(theirs, within, memory_bytes), daemon=True
        )
        self.process.start()
        theirs.close()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.line.close()


class Pool:
    """Worker processes, started when they are first needed. `seconds` is the longest that an answer may take."""

    def __init__(self, size: int, seconds: float, within: Reach, memory_bytes: int):
        self.size, self._seconds, self._within, self._memory = size, seconds, within, memory_bytes
        self._idle: LifoQueue[Worker | None] = LifoQueue()  # the last that answered has its tables at hand
        for _ in range(size):
            self._idle.put(None)
        self._threads = ThreadPoolExecutor(size, "tonnage-web")  # as many as processes: a thread always finds one idle
        self._closed = Event()

    async def answered(self, verb: str, question: Mapping[str, Any], left: Event, detail: str = FULL) -> EncodedAnswer:
        """The answer, or Refusal. `left`: set where nobody waits for it any more; `detail`: of its document."""
        loop = asyncio.get_running_loop()
        outcome = await loop.run_in_executor(
            self._threads, self._answered, (verb, question, detail), left, time.monotonic()
        )
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome

    def _answered(
        self, asked: tuple[str, Mapping[str, Any], str], left: Event, since: float
    ) -> EncodedAnswer | Refusal:
        start = time.monotonic()
        if left.is_set() or start - since > WAIT:
            return Refusal(503, "Busy", "others were answered first, for too long: ask again.")
        worker = self._idle.get()
        try:
            worker = worker or Worker(self._within, self._memory)
        except (OSError, RuntimeError, EOFError):
            # RuntimeError: of a script that starts processes while it is imported; EOFError: who starts them is gone
            self._idle.put(None)
            return Refusal(503, "Busy", "the system has no room for another process: ask again in a moment.")
        deadline = start + self._seconds
        try:
            worker.line.send(asked)
            while not worker.line.poll(LOOK):
                if left.is_set():  # what is nearly done is cheaper than a new process
                    deadline = min(deadline, time.monotonic() + GRACE)
                    left = Event()
                if self._closed.is_set() or time.monotonic() > deadline:
                    self._replace(worker)
                    return self._too_long()
            outcome: EncodedAnswer | Refusal = worker.line.recv()
        except (EOFError, OSError):  # the process is gone: the system ended it
            self._replace(worker)
            return Refusal(422, "TooLarge", "the question takes more memory than this server gives one: ask for less.")
        worker.answers += 1
        # What it had made by then stays with it.
        is_full = isinstance(outcome, Refusal) and outcome.kind == "TooLarge"
        if is_full or worker.answers >= RENEWED or self._closed.is_set():
            self._replace(worker)
        else:
            self._idle.put(worker)
        return outcome

    def _replace(self, worker: Worker) -> None:
        worker.end()
        self._idle.put(None)

    def _too_long(self) -> Refusal:
        # Not 503 or 504: clients and proxies ask those again by themselves, and the answer would be the same.
        return Refusal(
            422,
            "TooLong",
            (
                Message(
                    "the answer takes more than the {seconds:g} seconds that this server gives one: ask for "
                    "less, or ask for it as a job (POST /v1/jobs).",
                    seconds=self._seconds,
                )
            ),
        )

    def close(self) -> None:
        """End the processes; whoever still waits gets no answer."""
        self._closed.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        with suppress(Empty):
            while True:
                worker = self._idle.get_nowait()
                if worker is not None:
                    worker.end()


def _method() -> str:
    """A server of forks starts a process in a hundredth of a second, with all modules read; where the system has
    none, each is started anew.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["tonnage.web.process.warm", "tonnage.web.process.worker"]
    )
    return "forkserver"
