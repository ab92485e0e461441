"""Questions are answered in processes beside the server: one that takes too long, or more memory than it may, is
ended without harm to others.

A question and its answer pass over a pair of sockets, without a thread: between them the server reads other requests.
"""

import asyncio
import multiprocessing
import pickle
import socket
import time
from collections import deque
from collections.abc import Mapping
from threading import Event, Lock
from typing import Any

from msgspec import Struct

from tonnage.kernel.message import Message
from tonnage.kernel.reach import Reach
from tonnage.verbs.answered import FULL
from tonnage.web.answer import EncodedAnswer, Refusal
from tonnage.web.process.frames import HEADER, answer_of, frame, length_of
from tonnage.web.process.worker import work

LOOK = 0.05  # seconds between looks whether the client has left
WAIT = 30  # seconds for a process that is free
GRACE = 0.5  # seconds that an answer may still take when its client has left
RENEWED = 10_000  # answers after which a process is replaced, so that none grows without end
Outcome = EncodedAnswer | Refusal


class Worker:
    """One process, and the line to it."""

    def __init__(self, within: Reach, memory_bytes: int):
        context = multiprocessing.get_context(_method())
        self.line, theirs = socket.socketpair()
        self.line.setblocking(False)
        self.answers = 0
        self._ending, self._is_ended = Lock(), False
        self.process = context.Process(  # type: ignore[attr-defined]
            target=work, args=(theirs, within, memory_bytes), daemon=True
        )
        try:
            self.process.start()
        except BaseException:
            self.line.close()
            raise
        finally:
            theirs.close()

    async def ask(self, asked: tuple[str, Mapping[str, Any], str]) -> Outcome:
        """The outcome of a question. EOFError or OSError where the process is gone."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.line, frame(pickle.dumps(asked)))
        return answer_of(await self._come(length_of(await self._come(HEADER))))

    async def _come(self, size: int) -> bytearray:
        """So many bytes of the line."""
        loop, come = asyncio.get_running_loop(), bytearray(size)
        left = memoryview(come)
        while left:
            read = await loop.sock_recv_into(self.line, left)
            if not read:
                raise EOFError
            left = left[read:]
        return come

    def end(self) -> None:
        """End the process and close the line; who comes second waits until that is done."""
        with self._ending:
            if not self._is_ended:
                self._is_ended = True
                self.process.kill()
                self.process.join()
                self.process.close()
                self.line.close()


class Turn(Struct, eq=False):
    """An answer that is worked on, with its end. `left`: set where nobody waits for it any more."""

    end: asyncio.Timeout
    left: Event
    is_left: bool = False


class Pool:
    """Worker processes, started when they are first needed. `seconds` is the longest that an answer may take."""

    def __init__(self, size: int, seconds: float, within: Reach, memory_bytes: int):
        self.size, self._seconds, self._within, self._memory = size, seconds, within, memory_bytes
        self._idle: list[Worker | None] = [None] * size  # the last that answered has its tables at hand
        self._queue: deque[asyncio.Future[Worker | None]] = deque()
        self._starting: set[asyncio.Future[Worker]] = set()
        self._workers: set[Worker] = set()
        self._turns: set[Turn] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def answered(self, verb: str, question: Mapping[str, Any], left: Event, detail: str = FULL) -> EncodedAnswer:
        """The answer, or Refusal. `left`: set where nobody waits for it any more; `detail`: of its document."""
        since = time.monotonic()
        worker = await self._free()
        if self._closed or left.is_set() or time.monotonic() - since > WAIT:
            self._release(worker)
            raise Refusal(503, "Busy", "others were answered first, for too long: ask again.")
        worker = worker or await self._started()
        try:
            outcome = await self._in_time(worker, (verb, question, detail), left)
        except BaseException as error:  # the line holds part of an answer, or leads nowhere
            await self._replace(worker)
            if isinstance(error, TimeoutError):
                raise self._too_long() from None
            if isinstance(error, EOFError | OSError):  # the process is gone: the system ended it
                raise _too_large() from None
            raise
        worker.answers += 1
        # What it had made by then stays with it.
        is_full = isinstance(outcome, Refusal) and outcome.kind == "TooLarge"
        if is_full or worker.answers >= RENEWED or self._closed:
            await self._replace(worker)
        else:
            self._release(worker)
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome

    async def _started(self) -> Worker:
        starting = asyncio.ensure_future(asyncio.to_thread(Worker, self._within, self._memory))
        self._starting.add(starting)
        try:
            worker = await asyncio.shield(starting)
        except asyncio.CancelledError:  # nobody waits for it any more: the next question has it
            starting.add_done_callback(self._take)
            raise
        except (OSError, RuntimeError, EOFError):
            # RuntimeError: of a script that starts processes while it is imported; EOFError: who starts them is gone
            self._starting.discard(starting)
            self._release(None)
            raise Refusal(503, "Busy", "the system has no room for another process: ask again in a moment.") from None
        self._starting.discard(starting)
        self._workers.add(worker)
        return worker

    def _take(self, starting: asyncio.Future[Worker]) -> None:
        """A process that was started for a question which is gone."""
        self._starting.discard(starting)
        if starting.cancelled() or starting.exception() is not None:
            self._release(None)
        else:
            self._workers.add(starting.result())
            self._release(starting.result())

    async def _in_time(self, worker: Worker, asked: tuple[str, Mapping[str, Any], str], left: Event) -> Outcome:
        """The outcome; TimeoutError where it takes too long, or nobody waits for it any more."""
        async with asyncio.timeout(self._seconds) as end:
            turn = Turn(end, left)
            self._turns.add(turn)
            if self._looking is None or self._looking.done():
                self._looking = asyncio.get_running_loop().create_task(self._look())
            try:
                return await worker.ask(asked)
            finally:
                self._turns.discard(turn)

    async def _look(self) -> None:
        """Now and then, as long as anything is worked on: has a client left?"""
        while self._turns:
            await asyncio.sleep(LOOK)
            soon = asyncio.get_running_loop().time() + GRACE
            for turn in self._turns:
                if turn.left.is_set() and not turn.is_left:  # what is nearly done is cheaper than a new process
                    turn.is_left = True
                    turn.end.reschedule(min(soon, turn.end.when() or soon))

    async def _free(self) -> Worker | None:
        """A process that is idle, or the place of one; who came first has it first."""
        if self._idle:
            return self._idle.pop()
        turn: asyncio.Future[Worker | None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had its turn at the same moment
                self._release(turn.result())
            raise

    def _release(self, worker: Worker | None) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(worker)
                return
        self._idle.append(worker)

    async def _replace(self, worker: Worker) -> None:
        try:
            await asyncio.to_thread(worker.end)
            self._workers.discard(worker)  # only now: what is not ended when the server ends is ended then
        finally:
            self._release(None)

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

    async def close(self) -> None:
        """End the processes; whoever still waits gets no answer."""
        self._closed = True
        now = asyncio.get_running_loop().time()
        for turn in self._turns:
            turn.end.reschedule(now)
        if self._looking is not None:
            self._looking.cancel()
        while self._queue:
            self._release(None)
        started = await asyncio.gather(*self._starting, return_exceptions=True)
        workers, self._workers = self._workers, set()
        for worker in {*workers, *(each for each in started if isinstance(each, Worker))}:
            await asyncio.to_thread(worker.end)


def _too_large() -> Refusal:
    return Refusal(422, "TooLarge", "the question takes more memory than this server gives one: ask for less.")


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
