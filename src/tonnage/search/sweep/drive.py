"""A whole sweep: what is there is left, what is missing is made, and the dataset is summed up."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tonnage.search.sweep import dataset
from tonnage.search.sweep.manifest import estimator, locked, open_directory
from tonnage.search.sweep.progress import Progress
from tonnage.search.sweep.spec import Spec
from tonnage.search.sweep.summary import Summary, summarise
from tonnage.search.sweep.tasks import Tasks
from tonnage.search.sweep.work import Job, Report, peak_rss

ROUNDS = 2  # a part that was damaged where it lay is made once more


class Done(Struct, frozen=True, kw_only=True):
    """`lay`: chunks that were there; `failed`: chunks that could not be computed, and why. `seconds`: of making chunks, `first_seconds` of
    them until the first was back, which took its worker `first_chunk_seconds`; all workers spent `seconds_in_chunks` in chunks;
    `worker_rss`, `driver_rss`: the most bytes that one held."""

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


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sweep(
    spec: Spec, directory: Path, *, workers: int | None = None, ray: str | None = None, resume: bool = False,
    progress: Callable[[int, int], Progress] = Progress,
) -> Done:  # fmt: skip
    """Run it. `ray`: an address, or nothing for one that is started here; None: processes of this machine."""
    dataset.check_extra()
    tasks = Tasks(spec)
    open_directory(directory, spec, tasks, resume=resume)
    with locked(directory):
        return _run(spec, directory, tasks, workers, ray, progress)


def _run(
    spec: Spec,
    directory: Path,
    tasks: Tasks,
    workers: int | None,
    ray: str | None,
    progress: Callable[[int, int], Progress],
) -> Done:
    folder = directory / dataset.FOLDER
    job = Job(spec=spec, folder=str(folder.absolute()), digest=spec.digest(), estimator=estimator())
    run = _executor(job, workers, ray)
    made, plans_made, first, rss, lay, inside = 0, 0, (0.0, 0.0), 0, -1, 0.0
    failed: dict[int, str] = {}
    start = time.perf_counter()
    for _ in range(ROUNDS):
        there = dataset.done(folder, tasks, job.digest)
        count = sum(there)
        lay = count if lay < 0 else lay
        plans = sum(tasks.plans_of(number) for number in range(tasks.count) if there[number]) if count else 0
        with progress(tasks.plans, plans) as shown:
            for report in run(number for number in range(tasks.count) if not there[number]):
                first = first if made else (time.perf_counter() - start, report.seconds)
                _check(report, directory)
                if report.failed:
                    failed[report.number] = report.failed
                else:
                    made, plans_made = made + 1, plans_made + report.plans
                    failed.pop(report.number, None)
                rss, inside = max(rss, report.peak_rss), inside + report.seconds
                shown(tasks.plans_of(report.number))
        seconds = time.perf_counter() - start
        found = summarise(directory, spec, tasks)
        if not found.damaged:
            break
        for number in found.damaged:
            (folder / dataset.part_name(number)).unlink(missing_ok=True)
    return Done(chunks=tasks.count, lay=lay, made=made, plans_made=plans_made, failed=failed, seconds=seconds, first_seconds=first[0], first_chunk_seconds=first[1], worker_rss=rss,
                driver_rss=peak_rss(), summary=found, seconds_in_chunks=inside)  # fmt: skip


def _executor(job: Job, workers: int | None, address: str | None) -> Callable[[Iterator[int]], Iterator[Report]]:
    if address is not None:
        from tonnage.search.sweep import on_ray

        ray: Any = on_ray.connect(address or None, workers)
        return lambda numbers: on_ray.reports(ray, job, numbers, workers)
    from tonnage.search.sweep import local

    return lambda numbers: local.reports(job, numbers, workers or processors())


def _check(report: Report, directory: Path) -> None:
    """A disk that takes no more ends the sweep: every other chunk would end the same."""
    if report.unwritable:
        raise dataset.Unwritable(
            None, f"{report.unwritable}. What is in {directory} is whole: make room and run again with --resume"
        )
