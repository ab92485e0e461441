"""POST /v1/VERB: a question in, the document of `--json` out."""

import asyncio
from collections.abc import Awaitable, Callable
from threading import Event
from typing import Any

import msgspec
from litestar import MediaType, Request, Response, post
from litestar.handlers import HTTPRouteHandler

from tonnage.interchange.json_questions import CHECK, EXPORT
from tonnage.interchange.log_questions import DIAGNOSE, RECONCILE
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import OR, listed
from tonnage.verbs.answered import DETAILS, FULL, SUMMARY
from tonnage.web.answer import EncodedAnswer
from tonnage.web.batch import BATCH
from tonnage.web.launch import LAUNCH
from tonnage.web.state import Running
from tonnage.web.timeline import TIMELINE
from tonnage.web.wire.body import question_of, read

VERBS = (
    *("train", "serve", "plan", "max", "compare", "rules", "explain"),
    *(LAUNCH, TIMELINE, BATCH, CHECK, EXPORT, DIAGNOSE, RECONCILE),
)
SUMMARISED = frozenset({"train", "serve", CHECK})  # whose documents have a summary here
DETAIL = "detail"
SOON = 0.05  # seconds of an answer before anybody looks whether its client has left
SEARCHES = frozenset({"plan", "max", "compare", BATCH})
SEARCHED = frozenset({"frontier", "for_my_machine", "simulate", "trace", "percentile"})  # of `serve`
Asking = Request[Any, Any, Any]


def is_search(verb: str, question: dict[str, Any]) -> bool:
    """Whether an answer is a search over many, which may take long."""
    return verb in SEARCHES or not SEARCHED.isdisjoint(question)


async def asked(request: Asking, verb: str) -> Response[bytes]:
    """Read a question, and answer it or say why not."""
    running: Running = request.app.state.running
    body = await read(request, running.limits)
    return responded(await _found(request, verb, body, question_of(body), detail_of(request)))


async def answer_to(request: Asking, verb: str, question: dict[str, Any]) -> EncodedAnswer:
    """The answer to a question that came in no body."""
    return await _found(request, verb, msgspec.json.encode(question), question)


def kept_answer(running: Running, verb: str, question: dict[str, Any]) -> EncodedAnswer | None:
    """The answer to a question that was asked a short while ago, or the summary of it; nobody is asked for it."""
    body = msgspec.json.encode(question)
    return running.kept.get(verb, body) or running.kept.get(verb, body, SUMMARY)


async def _found(
    request: Asking, verb: str, body: bytes, question: dict[str, Any], detail: str = FULL
) -> EncodedAnswer:
    """What was answered a short while ago to the same bytes, or is now."""
    running: Running = request.app.state.running
    answer = running.kept.get(verb, body, detail)
    if answer is None:
        answer = await _while_wanted(request, running.answered(verb, question, is_search(verb, question), detail))
        running.kept.put(verb, body, answer, detail)
    return answer


def detail_of(request: Asking) -> str:
    """How much of the document is asked for."""
    detail = request.query_params.get(DETAIL, FULL)
    if detail not in DETAILS:
        raise InvalidInput(
            "{name} is {details}. Got {detail}.", name=DETAIL, details=listed(DETAILS, OR), detail=shown(detail)
        )
    return detail


def responded(answer: EncodedAnswer) -> Response[bytes]:
    """The answer as it is sent."""
    headers = {"Tonnage-Status": str(answer.status), "Cache-Control": "no-store"}
    if answer.command:
        headers["Tonnage-Command"] = answer.command
    return Response(answer.body, media_type=MediaType.JSON, headers=headers)


async def _while_wanted(request: Asking, answering: Callable[[Event], Awaitable[EncodedAnswer]]) -> EncodedAnswer:
    """The answer; a client that leaves ends the work for it, where that takes any time."""
    left = Event()
    watching: list[asyncio.Task[None]] = []
    later = asyncio.get_running_loop().call_later(
        SOON, lambda: watching.append(asyncio.create_task(_watched(request, left)))
    )
    try:
        return await answering(left)
    finally:
        later.cancel()
        for task in watching:
            task.cancel()


async def _watched(request: Asking, left: Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()


def _route(verb: str) -> HTTPRouteHandler:
    @post(f"/v1/{verb}", status_code=200, name=verb, query=(DETAIL,) if verb in SUMMARISED else ())
    async def answer(request: Asking) -> Response[bytes]:
        return await asked(request, verb)

    return answer


ROUTES = [_route(verb) for verb in VERBS]
