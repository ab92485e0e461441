"""GET /metrics as Prometheus reads it: requests by route and status with their times, jobs and saved plans."""

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from time import time

from tonnage.web.jobs.board import ENDED, Board

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds


class Metrics:
    """The counts of one server process. Routes and methods are those of the application, so that no client can make the
    table long.
    """

    METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})

    def __init__(self) -> None:
        self.start = time()
        self._asked: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, route: str, method: str, code: int, seconds: float) -> None:
        self._asked[route, method if method in self.METHODS else "other", code] += 1
        self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# HELP tonnage_requests_total Requests answered."
        yield "# TYPE tonnage_requests_total counter"
        for (route, method, code), times in sorted(self._asked.items()):
            yield f'tonnage_requests_total{{route="{route}",method="{method}",code="{code}"}} {times}'
        yield "# HELP tonnage_request_seconds Time from a request's headers to the end of its answer."
        yield "# TYPE tonnage_request_seconds histogram"
        for route, buckets in sorted(self._buckets.items()):
            upto = 0
            for limit, times in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                upto += times
                yield f'tonnage_request_seconds_bucket{{route="{route}",le="{limit}"}} {upto}'
            yield f'tonnage_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'tonnage_request_seconds_count{{route="{route}"}} {upto}'
        yield (
            "# HELP tonnage_process_start_time_seconds When this process of the server started; with several, "
            "each counts for itself."
        )
        yield "# TYPE tonnage_process_start_time_seconds gauge"
        yield f'tonnage_process_start_time_seconds{{process="{os.getpid()}"}} {self.start:.3f}'


def counted(board: Board) -> str:
    """Lines as Prometheus reads them."""
    return "\n".join(_lines(board)) + "\n"


def _lines(board: Board) -> Iterator[str]:
    counters = board.counters()
    yield (
        "# HELP tonnage_jobs Jobs of all workers that are in this state; those that have ended, until they are dropped."
    )
    yield "# TYPE tonnage_jobs gauge"
    for state, number in board.states().items():
        yield f'tonnage_jobs{{state="{state}"}} {number}'
    yield "# HELP tonnage_jobs_started_total Jobs that were asked for."
    yield "# TYPE tonnage_jobs_started_total counter"
    yield from _of(counters, "started", "tonnage_jobs_started_total", "verb")
    yield "# HELP tonnage_jobs_ended_total Jobs that have ended."
    yield "# TYPE tonnage_jobs_ended_total counter"
    for state in ENDED:
        yield from _of(counters, state, "tonnage_jobs_ended_total", "verb", f'state="{state}",')
    yield "# HELP tonnage_job_seconds_total Seconds that jobs took."
    yield "# TYPE tonnage_job_seconds_total counter"
    yield from _of(counters, "seconds", "tonnage_job_seconds_total", "verb")
    yield "# HELP tonnage_saved_total Saves and deletions of plans, and those that were refused."
    yield "# TYPE tonnage_saved_total counter"
    yield from _of(counters, "saved", "tonnage_saved_total", "action")


def _of(counters: dict[str, float], prefix: str, name: str, label: str, more: str = "") -> Iterator[str]:
    for key, value in counters.items():
        before, _, after = key.partition(":")
        if before == prefix:
            yield f'{name}{{{more}{label}="{after}"}} {value:.6g}'
