"""Jobs and saved plans for /metrics: of all workers together, whichever is asked."""

from collections.abc import Iterator

from tonnage.web.jobs.board import ENDED, Board


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
