"""Chunks on processes of this machine. A worker that dies is replaced, and its chunk given to another.

Each worker has a pipe of its own, so it is known which chunk a worker died of, and a worker whose driver has died reads
the end of its
pipe and leaves: the pools of the standard library know the one no better than "abruptly", and miss the other.
"""

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from tonnage.kernel.message import Message
from tonnage.search.sweep.work import Job, Lost, Report, attempt

TRIES = 3  # workers that may die of one chunk
Work = Callable[[Job, int], Report]
NONE_LIVES = 8  # workers that may die one after the other without a chunk between: then it is not the chunks


def reports(job: Job, numbers: Iterable[int], workers: int, do: Work = attempt) -> Generator[Report]:
    """One report for each chunk, as they come. At most one chunk is with each worker: what waits is a number."""
    waiting, fell = iter(numbers), 0
    again: list[int] = []
    died: dict[int, int] = {}
    pool = [_Worker(job, do) for _ in range(workers)]
    try:
        for worker in pool:
            worker.give(next(waiting, None))
        while busy := {worker.pipe: worker for worker in pool if worker.number is not None}:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                report = worker.take()
                if report is None:
                    number, fell = worker.number or 0, fell + 1
                    died[number] = died.get(number, 0) + 1
                    ended = worker.ended()
                    pool[pool.index(worker)] = worker = _Worker(job, do)
                    if fell >= NONE_LIVES:
                        raise Lost(
                            "no worker stays alive: {fell} died one after the other, the last {ended}.",
                            fell=fell,
                            ended=ended,
                        )
                    if died[number] < TRIES:
                        again.append(number)
                    else:
                        yield Report(
                            number=number,
                            failed=Message("{tries} workers died of it, the last {ended}", tries=TRIES, ended=ended),
                        )
                else:
                    fell = 0
                    yield report
                worker.give(again.pop() if again else next(waiting, None))
            for worker in pool:  # idle ones, when a dead one's chunk comes back at the end
                if worker.number is None and again:
                    worker.give(again.pop())
    finally:
        for worker in pool:
            worker.end()


class _Worker:
    """A process, this end of its pipe, and the chunk that it has."""

    def __init__(self, job: Job, do: Work):
        context = multiprocessing.get_context("spawn")  # no threads or locks of the driver are copied
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, job, do), daemon=True)
        self.process.start()
        theirs.close()
        self.number: int | None = None

    def give(self, number: int | None) -> None:
        self.number = number
        if number is not None:
            with suppress(BrokenPipeError, ConnectionResetError):  # it is dead: take() says so
                self.pipe.send(number)

    def take(self) -> Report | None:
        """The worker's next report; None where the worker is dead."""
        try:
            report: Report = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return report

    def ended(self) -> str:
        self.process.join()
        code = self.process.exitcode or 0
        return Message("by signal {code}", code=-code) if code < 0 else Message("with status {code}", code=code)

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _serve(pipe: Connection, job: Job, do: Work) -> None:
    """A worker's life: numbers in, reports out. Ctrl-C is for the driver, which ends us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            number: Any = pipe.recv()
            pipe.send(do(job, number))
        except (EOFError, OSError):
            return
