"""A driver of Ray in a process of its own. When Ray's agents on this node die (the raylet, the head's GCS), Ray's
library ends the process that it is in, whatever that process would do: so that process is not the one that answers
the user.
"""

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message
from tonnage.search.sweep import on_ray
from tonnage.search.sweep.work import Job, Lost, Report

PATIENCE = 30  # seconds for a driver to end what runs, before it is killed
Drive = Callable[[Job, str | None, int | None, Iterator[int]], Generator[Report]]


class _Ended(Exception):
    """Raised where the process that started this one wants no more reports."""


def reports(
    job: Job, address: str | None, workers: int | None, numbers: Iterator[int], drive: "Drive | None" = None
) -> Generator[Report]:
    """One report for each chunk, as they come. Lost where Ray's process ends by itself; other TonnageErrors where
    Ray cannot be joined.
    """
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, job, address, workers, drive or on_ray.drive))
    process.start()
    theirs.close()
    try:
        while (message := _next(pipe, process)) is not None:
            if isinstance(message, Report):
                yield message
            elif isinstance(message, TonnageError):
                raise message
            else:  # it asks for the number of a chunk
                with suppress(BrokenPipeError, ConnectionResetError):
                    pipe.send(next(numbers, None))
    finally:
        pipe.close()
        process.terminate()
        process.join(PATIENCE)
        process.kill()
        process.join()


ASKS, ENDS = "number", "end"


def _next(pipe: Connection, process: Any) -> Any:
    """The next message of the driver; None at its end."""
    try:
        message: Any = pipe.recv()
    except (EOFError, OSError):
        process.join()
        code = process.exitcode or 0
        how = Message("by signal {code}", code=-code) if code < 0 else Message("with status {code}", code=code)
        raise Lost("Ray is lost on this node: the process that joined it ended {how}.", how=how) from None
    return None if message == ENDS else message


def _serve(pipe: Connection, job: Job, address: str | None, workers: int | None, drive: Drive) -> None:
    """The driver's life. Ctrl-C is for the process that started it, which then ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)

    def numbers() -> Iterator[int]:
        while True:
            pipe.send(ASKS)
            number = pipe.recv()
            if number is None:
                return
            yield number

    try:
        for report in drive(job, address, workers, numbers()):
            pipe.send(report)
        pipe.send(ENDS)
    except TonnageError as error:
        with suppress(OSError):
            pipe.send(error)
    except (EOFError, BrokenPipeError, _Ended):
        return
    except Exception as error:  # noqa: BLE001 (Ray has many of its own)
        text = " ".join(str(error).split())[:300]
        with suppress(OSError):
            pipe.send(Lost("Ray is lost: {type}: {text}", type=type(error).__name__, text=text))


def _end(*_: object) -> None:
    """Once: what is in flight is cancelled on the way out."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Ended
