"""What one worker does for jobs: it starts those that wait, ends those that take too long, and tidies."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import Any

import msgspec

from tonnage.kernel.encoding import encode
from tonnage.kernel.message import Message
from tonnage.web.jobs.board import QUEUED, Board
from tonnage.web.jobs.limits import JobLimits
from tonnage.web.jobs.processes import end_process
from tonnage.web.jobs.work import Task

BUSY, IDLE = 0.1, 2.0  # seconds between two looks while jobs wait, and while none do
# A job has one core: threads of linear algebra would take those of the others.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Keeper:
    """Runs the jobs of one worker. `reach`: how far a question may reach."""

    def __init__(self, board: Board, limits: JobLimits, reach: Any):
        self.board, self.limits, self.reach = board, limits, reach
        self._called = asyncio.Event()
        self._watched: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop().create_task(self._keep())

    async def stop(self) -> None:
        """Ends the processes of this worker's jobs too."""
        tasks = [*self._watched, *([self._loop] if self._loop else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def call(self) -> None:
        """Look now: there is a job to start."""
        self._called.set()

    async def _keep(self) -> None:
        while True:
            self.board.tidy(self.limits)
            while await self._start_one():
                pass
            waiting = self.board.states()[QUEUED] > 0
            with suppress(TimeoutError):
                await asyncio.wait_for(self._called.wait(), BUSY if waiting else IDLE)
            self._called.clear()

    async def _start_one(self) -> bool:
        """Whether a job could be started."""
        job = self.board.take(self.limits)
        if job is None:
            return False
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tonnage.web.jobs.work",
                str(self.board.folder),
                job.id,
                stdin=PIPE,
                stdout=DEVNULL,
                pass_fds=(job.lock,),
                start_new_session=True,
                env=os.environ | ENVIRONMENT,
            )
        finally:
            os.close(job.lock)
        task = Task(
            verb=job.verb,
            question=msgspec.Raw(job.question),
            memory_bytes=self.limits.memory_bytes,
            files=None if self.reach.files is None else str(self.reach.files),
            hubs=self.reach.hubs,
            machine=self.reach.machine,
        )
        watch = asyncio.get_running_loop().create_task(self._watch(job.id, process, encode(task) + b"\n"))
        self._watched.add(watch)
        watch.add_done_callback(self._watched.discard)
        return True

    async def _watch(self, job: str, process: Process, task: bytes) -> None:
        """Until its process has ended, of itself or otherwise."""
        assert process.stdin is not None
        try:
            if not self.board.name_process(job, process.pid):
                return
            with suppress(ConnectionError):  # it was killed before it read the question
                process.stdin.write(task)
                await process.stdin.drain()
            await asyncio.wait_for(process.wait(), self.limits.seconds)
        except TimeoutError:
            self.board.fail(
                job,
                "TooLong",
                Message(
                    "the search takes longer than a job may, {seconds:g} seconds: ask for less.",
                    seconds=self.limits.seconds,
                ),
            )
        finally:
            if process.returncode is None:
                end_process(process.pid)
            self.board.tidy(self.limits)
            self.call()
            await process.wait()
