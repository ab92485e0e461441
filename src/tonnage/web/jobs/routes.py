"""/v1/jobs: a long search is asked, followed and cancelled."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath
from litestar.response import Stream

from tonnage.documents.plan import FoundPlanDocument
from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.reach import limited
from tonnage.kernel.registry import unknown
from tonnage.web.answer import Refusal
from tonnage.web.jobs.board import CANCELLED, DONE, Board, FullError, Job, Step
from tonnage.web.jobs.checked import check
from tonnage.web.jobs.documents import SEARCHES, JobDocument, ReasonDocument, ResultDocument, StepDocument
from tonnage.web.jobs.processes import end_process
from tonnage.web.wire.body import question_of, read
from tonnage.web.words import parted

LOOK = 0.1  # seconds between two looks at a job that is followed
STILL_HERE = 15.0  # seconds after which something is sent, so that nobody in between hangs up
JSON, EVENTS = "application/json", "text/event-stream"
Asking = Request[Any, Any, Any]


@post("/v1/jobs", status_code=202)
async def start(request: Asking, state: State) -> Response[bytes]:
    """Start a search. What is wrong by the question alone is refused at once; whether its answer can be had, the job
    finds out.
    """
    verb, question = _asked(question_of(await read(request, state.settings.limits)))
    with limited(state.settings.reach):
        check(verb, parted(question)[0])
    try:
        job = state.jobs.board.add(verb, encode(question), state.jobs.limits)
    except FullError:
        words = f"{state.jobs.limits.waiting} jobs wait already: ask again when some have ended."
        raise Refusal(429, "Busy", words, {"Retry-After": "10"}) from None
    state.jobs.call()
    return _job(state.jobs.board, job, 202, {"Location": f"/v1/jobs/{job}"})


@get("/v1/jobs/{job:str}", sync_to_thread=False)
def look(job: FromPath[str], state: State) -> Response[bytes]:
    """A job as it is: with its progress, and with the answer or the error when it has ended."""
    return _job(state.jobs.board, job)


@delete("/v1/jobs/{job:str}", status_code=200, sync_to_thread=False)
def cancel(job: FromPath[str], state: State) -> Response[bytes]:
    """Cancel a job: its process is ended at once. One that has ended stays as it ended."""
    pid = state.jobs.board.cancel(job)
    if pid is not None:
        end_process(pid)
    state.jobs.call()
    return _job(state.jobs.board, job)


@get("/v1/jobs/{job:str}/events", sync_to_thread=False, as_it_is=True)
def follow(job: FromPath[str], request: Asking, state: State) -> Response[Any]:
    """Server-sent events: `progress` as the search goes on, `best` with each better plan of plan --train, at the end
    one of `result`, `error` and `cancelled`.

    Who lost the connection says the last number it heard as Last-Event-ID, and hears what came after it. 204 where
    nothing does any more: this ends an EventSource, which would ask again every second otherwise.
    """
    requested = _found(state.jobs.board, job)
    heard = request.headers.get("last-event-id", "").strip()
    after = int(heard) if heard.isascii() and heard.isdecimal() and len(heard) < 16 else 0
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if requested.over and after >= requested.last:
        return Response(b"", status_code=204, headers=headers)
    return Stream(_events(state.jobs.board, job, after), media_type=EVENTS, headers=headers)


async def _events(board: Board, job: str, after: int) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    silent = 0.0
    while (now := board.job(job)) is not None:  # before its steps: a job that is over here has told all of them
        events = [*_new_events(board, now, after)]
        for number, event in events:
            after = max(after, number)
            yield event
        if now.over:
            return
        silent = 0.0 if events else silent + LOOK
        if silent >= STILL_HERE:
            silent = 0.0
            yield b": still here\n\n"
        await asyncio.sleep(LOOK)


def _new_events(board: Board, job: Job, after: int) -> Iterator[tuple[int, bytes]]:
    events = [(step.last, _event(step.last, "progress", encode(_of(step)))) for step in board.steps(job.id, after)]
    if (best := board.best(job.id, after)) is not None:
        events.append((best[0], _event(best[0], "best", best[1])))
    yield from sorted(events)
    if job.state == DONE:
        yield job.last, _event(job.last, "result", encode(_result(board, job)))
    elif job.over:
        yield job.last, _event(job.last, "cancelled" if job.state == CANCELLED else "error", encode(_reason(job)))


def _event(number: int, name: str, data: bytes) -> bytes:
    """JSON has no newline of its own: one line of data."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), data)


def _asked(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    verb, question = body.get("verb"), body.get("question")
    for name in body:
        if name not in ("verb", "question"):
            raise unknown("field of a job", name, ("verb", "question"))
    if "question" in body and not isinstance(question, dict):
        raise InvalidInput("question must be an object of names and values. Got {question}.", question=shown(question))
    if question is None or not isinstance(verb, str):
        raise InvalidInput(
            'a job is {{"verb": "plan", "question": {{...}}}}. Got {body}.', body=", ".join(sorted(body)) or "nothing"
        )
    if verb not in SEARCHES:
        raise unknown("verb of a job", verb, SEARCHES)
    return verb, question


def _found(board: Board, job: str) -> Job:
    requested = board.job(job)
    if requested is None:
        raise Refusal(404, "NotFound", "there is no such job: it never was, or ended long ago and was dropped.")
    return requested


def _job(board: Board, job: str, code: int = 200, headers: dict[str, str] | None = None) -> Response[bytes]:
    record = _found(board, job)
    document = JobDocument(
        id=record.id,
        verb=record.verb,  # type: ignore[arg-type]
        state=record.state,  # type: ignore[arg-type]
        created=_time(record.created) or "",
        started=_time(record.started),
        ended=_time(record.ended),
        progress=[_of(step) for step in board.steps(job)],
        best=_best(board, job),
        result=_result(board, record) if record.state == DONE else None,
        error=_reason(record) if record.over and record.state != DONE else None,
    )
    return Response(
        encode(document),
        status_code=code,
        media_type=JSON,
        headers={"Cache-Control": "no-store"} | (headers or {}),
    )


def _of(step: Step) -> StepDocument:
    return StepDocument(what=step.what, done=step.done, of=step.of)


def _best(board: Board, job: str) -> FoundPlanDocument | None:
    best = board.best(job)
    return None if best is None else msgspec.json.decode(best[1], type=FoundPlanDocument)


def _result(board: Board, job: Job) -> ResultDocument:
    return ResultDocument(
        status=job.status or 0, command=job.command or "", document=msgspec.Raw(board.document(job.id))
    )


def _reason(job: Job) -> ReasonDocument:
    return ReasonDocument(kind=job.kind or "", message=job.message or "")


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


ROUTES = [start, look, cancel, follow]
