"""The process of one job: `python -m tonnage.web.jobs.work FOLDER JOB`, with the question on its standard input.

It answers as every face does, and writes its progress and its answer down itself: it does not matter which worker is
asked about it. Its input stays open as long as the worker that started it lives; when that ends, so does the process.
"""

import os
import resource
import sys
import time
import traceback
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec

from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message, plain
from tonnage.kernel.reach import Reach
from tonnage.search.progress import followed
from tonnage.verbs.ask import ask, line
from tonnage.web.answer import is_out_of_memory
from tonnage.web.jobs.board import Board
from tonnage.web.jobs.limits import MAX_PROGRESS
from tonnage.web.process.parent import kill_with_parent
from tonnage.web.words import ENGLISH, encoded, parted, said_in

COURTESY = 5  # how much less of the processor it asks for than the workers, which answer at once


class Task(msgspec.Struct, frozen=True):
    """What a process is told. `files`, `hubs`, `machine`: its Reach."""

    verb: str
    question: msgspec.Raw
    memory_bytes: int
    files: str | None
    hubs: bool
    machine: bool

    @property
    def reach(self) -> Reach:
        return Reach(files=self.files, hubs=self.hubs, machine=self.machine)


class Teller:
    """Passes progress on, each count at most so many times a second; and what was left out at the end."""

    def __init__(self, board: Board, job: str):
        self.board, self.job = board, job
        self.told: dict[str, float] = {}
        self.left: dict[str, tuple[int, int | None]] = {}

    def __call__(self, what: str, done: int, of: int | None) -> None:
        now = time.monotonic()
        if done != of and now - self.told.get(what, 0.0) < 1 / MAX_PROGRESS:
            self.left[what] = done, of
            return
        self.told[what] = now
        self.left.pop(what, None)
        self.board.tell(self.job, what, done, of)

    def best(self, plan: Any) -> None:
        """The best plan so far, at once: few are better than all before them."""
        self.board.find(self.job, encode(plan))

    def over(self) -> None:
        for what, (done, of) in self.left.items():
            self.board.tell(self.job, what, done, of)


def work(board: Board, job: str, task: Task) -> None:
    """Answer it, and write down what came of it."""
    tell, language = Teller(board, job), ENGLISH
    try:
        question, language = parted(msgspec.json.decode(task.question))
        with followed(tell, tell.best):
            reply = ask(task.verb, question, task.reach)
        document = encoded(reply.document, language)
    except TonnageError as error:
        tell.over()
        board.fail(job, type(error).__name__, plain(said_in(language, str(error))))
    except Exception as error:  # noqa: BLE001 - the user is told, and the server's owner sees where it was
        if is_out_of_memory(error):
            limit = f"{task.memory_bytes / 2**30:.3g}"
            board.fail(
                job,
                "TooLarge",
                Message("the search needs more memory than a job is given, {given} GiB: ask for less.", given=limit),
            )
            return
        traceback.print_exc()
        board.fail(
            job,
            "Broken",
            Message("the search broke off ({type}): this is a defect of tonnage.", type=type(error).__name__),
        )
    else:
        tell.over()
        board.answer(job, reply.status, line(reply.words), document)


def main(folder: str, job: str) -> None:
    kill_with_parent()
    with open(0, "rb", buffering=0, closefd=False) as pipe:  # no buffer: Python locks it when it ends
        task = msgspec.json.decode(pipe.readline(), type=Task)
    Thread(target=_end_with_server, daemon=True).start()
    os.nice(COURTESY)
    resource.setrlimit(resource.RLIMIT_DATA, (task.memory_bytes, task.memory_bytes))
    work(Board(Path(folder)), job, task)


def _end_with_server() -> None:
    os.read(0, 1)  # nothing more is ever written to it: it ends with the worker
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
