"""A whole sweep: what is there is left, what is missing is made, and the dataset is summed up."""

import os
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct

from tonnage.kernel.message import Message
from tonnage.search.sweep import dataset
from tonnage.search.sweep.manifest import estimator, locked, open_directory
from tonnage.search.sweep.progress import Progress
from tonnage.search.sweep.spec import Spec
from tonnage.search.sweep.summary import Summary, summarise
from tonnage.search.sweep.tasks import Tasks
from tonnage.search.sweep.work import Job, Lost, Report, peak_rss

Run = Callable[[Iterator[int]], Generator[Report]]
WHAT = {"train": "plans", "serve": "questions"}  # that are counted while it runs
ROUNDS = 2  # a part that was damaged where it lay is made once more
DAMAGED = "its part was damaged on disk after it was written"


class Done(Struct, frozen=True, kw_only=True):
    """`lay`: chunks that were there; `failed`: chunks that could not be computed, and why. `seconds`: of making
    chunks, `first_seconds` of them until the first was back, which took its worker `first_chunk_seconds`; all
    workers spent `seconds_in_chunks` in chunks, `processor_seconds` at work; the driver took `summary_seconds` to go
    over the parts; `worker_rss`, `driver_rss`: the most bytes that one held.
    """

    chunks: int
    lay: int
    made: int
    plans_made: int
    failed: dict[int, str]
    seconds: float
    first_seconds: float
    first_chunk_seconds: float
    worker_rss: int
    driver_rss: int
    summary: Summary
    seconds_in_chunks: float
    processor_seconds: float
    summary_seconds: float


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sweep(
    spec: Spec,
    directory: Path,
    *,
    workers: int | None = None,
    ray: str | None = None,
    resume: bool = False,
    progress: Callable[[int, int], Progress] | None = None,
) -> Done:
    """Run it. `ray`: an address, or nothing for one that is started here; None: processes of this machine."""
    tasks = Tasks(spec)
    dataset.check_extra()
    open_directory(directory, spec, tasks, resume=resume)
    with locked(directory):
        return _run(spec, directory, tasks, workers, ray, progress or partial(Progress, what=WHAT[spec.kind]))


class _Counts:
    """The counts of the reports so far."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.made = self.plans = self.worker_rss = 0
        self.failed: dict[int, str] = {}
        self.first: tuple[float, float] | None = None
        self.inside = self.processor = 0.0

    def add(self, report: Report) -> None:
        self.first = self.first or (time.perf_counter() - self.start, report.seconds)
        if report.failed:
            self.failed[report.number] = report.failed
            return
        self._count_chunk(report.number, report.plans)
        self.inside, self.processor = self.inside + report.seconds, self.processor + report.processor_seconds
        self.worker_rss = max(self.worker_rss, report.peak_rss)

    def settle(self, folder: Path, tasks: Tasks, digest: str, damaged: Collection[int]) -> None:
        """Compare the reports with the parts on disk, which decide: a worker may write its part and die before it
        reports, and a part that was written may be damaged afterwards.
        """
        for number in [number for number in self.failed if number not in damaged]:
            if dataset.is_whole(folder / dataset.part_name(number), digest):
                self._count_chunk(number, tasks.plans_of(number))
        self.failed |= dict.fromkeys(damaged, DAMAGED)

    def _count_chunk(self, number: int, plans: int) -> None:
        self.failed.pop(number, None)
        self.made, self.plans = self.made + 1, self.plans + plans


def _run(
    spec: Spec,
    directory: Path,
    tasks: Tasks,
    workers: int | None,
    ray: str | None,
    progress: Callable[[int, int], Progress],
) -> Done:
    folder, digest = directory / dataset.FOLDER, spec.digest()
    job = Job(spec=spec, folder=str(folder.absolute()), digest=digest, estimator=estimator())
    counts, lay = _Counts(), -1
    with _executor(job, workers, ray) as run:
        for _ in range(ROUNDS):
            there = dataset.done(folder, tasks, digest)
            lay = sum(there) if lay < 0 else lay
            with progress(tasks.plans, sum(map(tasks.plans_of, _numbers(there, 1)))) as shown:
                _run_missing_chunks(run, there, directory, counts, lambda number: shown(tasks.plans_of(number)))
            seconds = time.perf_counter() - counts.start
            dataset.tidy(folder)
            summary = _summarised(directory, spec, tasks)
            summed = time.perf_counter() - counts.start - seconds
            counts.settle(folder, tasks, digest, summary.damaged)
            if not summary.damaged:
                break
            for number in summary.damaged:
                (folder / dataset.part_name(number)).unlink(missing_ok=True)
    first = counts.first or (0.0, 0.0)
    return Done(
        chunks=tasks.count,
        lay=lay,
        made=counts.made,
        plans_made=counts.plans,
        failed=counts.failed,
        seconds=seconds,
        first_seconds=first[0],
        first_chunk_seconds=first[1],
        seconds_in_chunks=counts.inside,
        processor_seconds=counts.processor,
        summary_seconds=summed,
        worker_rss=counts.worker_rss,
        driver_rss=peak_rss(),
        summary=summary,
    )


def _run_missing_chunks(
    run: Run, there: bytearray, directory: Path, counts: _Counts, shown: Callable[[int], None]
) -> None:
    """Compute the chunks that are not on disk yet."""
    with closing(run(_numbers(there, 0))) as reports:
        try:
            for report in reports:
                _check(report, directory)
                counts.add(report)
                shown(report.number)
        except Lost as error:
            raise Lost(
                "{error} What is in {directory} is whole: run again with --resume.", error=error, directory=directory
            ) from None


def _numbers(there: bytearray, wanted: int) -> Iterator[int]:
    """The numbers of the chunks on disk (`wanted` 1), or of those that are missing (0)."""
    return (number for number, is_there in enumerate(there) if is_there == wanted)


def _summarised(directory: Path, spec: Spec, tasks: Tasks) -> Summary:
    try:
        return summarise(directory, spec, tasks)
    except OSError as error:
        raise dataset.Unwritable(
            None,
            (
                Message(
                    "cannot write the best rows to {directory}: {strerror}. All parts are there: make room "
                    "and run again with --resume",
                    directory=directory,
                    strerror=error.strerror or error,
                )
            ),
        ) from None


@contextmanager
def _executor(job: Job, workers: int | None, address: str | None) -> Iterator[Run]:
    """The executor that computes chunks: local processes or Ray."""
    if address is not None:
        from tonnage.search.sweep import apart, on_ray

        if on_ray.is_joined():
            yield lambda numbers: on_ray.drive(job, address or None, workers, numbers)
        else:
            yield lambda numbers: apart.reports(job, address or None, workers, numbers)
        return
    from tonnage.search.sweep import local

    yield lambda numbers: local.reports(job, numbers, workers or processors())


def _check(report: Report, directory: Path) -> None:
    """A disk that takes no more ends the sweep: every other chunk would end the same."""
    if report.unwritable:
        raise dataset.Unwritable(
            None,
            Message(
                "{unwritable}. What is in {directory} is whole: make room and run again with --resume",
                unwritable=report.unwritable,
                directory=directory,
            ),
        )
