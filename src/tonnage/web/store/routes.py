"""/v1/saved: plans are saved under a name, read again with their history, and deleted."""

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.background_tasks import BackgroundTask
from litestar.datastructures import State
from litestar.params import FromPath

from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import Reach, limited
from tonnage.kernel.registry import nearest, unknown
from tonnage.question.command_line import command, line
from tonnage.web.answer import Refusal
from tonnage.web.jobs.board import DONE, Board
from tonnage.web.jobs.checked import check
from tonnage.web.questions import kept_answer
from tonnage.web.store.conflict import ConflictError, StoreError
from tonnage.web.store.digest import SAVED_VERBS, Digest, digest, unanswered
from tonnage.web.store.documents import (
    AskedSave,
    DeletedDocument,
    SavedDocument,
    SavedPlan,
    SavedPlansDocument,
    SavedSummary,
)
from tonnage.web.store.figures import digest_of
from tonnage.web.store.names import ANY, check_name
from tonnage.web.store.opened import REFUSED
from tonnage.web.store.writer import Save
from tonnage.web.wire.body import question_of, read
from tonnage.web.words import parted

if TYPE_CHECKING:  # SQLAlchemy is read when something is saved
    from tonnage.web.store.saved import Store

JSON = "application/json"
Asking = Request[Any, Any, Any]
SHOWN, MOST_SHOWN = 100, 1000  # plans, or versions of one, on a page
MAX_VERSION = 2**31 - 1
FIELDS: dict[str, tuple[type, str]] = {
    "name": (str, "a text"),
    "verb": (str, f"one of {', '.join(SAVED_VERBS)}"),
    "question": (dict, "an object of names and values"),
    "job": (str, "the id of a job"),
    "version": (int, "a whole number from 0, which is of a new name, to 2,147,483,647"),
}
_log = logging.getLogger("tonnage.web")
_TAG = re.compile(r'(?:W/)?"(\d{1,9})"\Z')


@post("/v1/saved", status_code=201)
async def save(request: Asking, state: State) -> Response[bytes]:
    """Save a question, as a new version of its name, with what its answer is now where that is known: it was
    asked a moment ago, or is that of a job. Else its figures follow: saving asks no process that answers, and waits for
    nobody's questions.
    """
    body = await read(request, state.settings.limits)
    question_of(body)  # with its bounds
    to_save = _asked(body)
    check_name(to_save.name)
    expected = _expected(request, to_save.version)
    if not state.store.saves:
        raise InvalidInput(REFUSED)
    verb, question, answer_digest = await _answered(to_save, state)
    plan = await state.writer.save(Save(to_save.name, verb, question, answer_digest, expected))
    if plan.status is None:
        state.figures.compute(plan.name, plan.version)
    return _responded(
        SavedDocument(plan=plan),
        201,
        {"ETag": _tag(plan), "Location": f"/v1/saved/{quote(to_save.name, safe='')}"},
        counted=BackgroundTask(asyncio.to_thread, state.jobs.board.count, "saved:save"),
    )


@get("/v1/saved", query=("after", "limit"))
async def every(request: Asking, state: State) -> Response[bytes]:
    """A page of names in their order, with the figures of their latest version; of those `after` a name."""
    after, limit = request.query_params.get("after", ""), _number(request, "limit", SHOWN, MOST_SHOWN)
    store = await asyncio.to_thread(state.store.for_reading)
    plans = await asyncio.to_thread(store.every, after, limit + 1) if store else []
    return _page(state, plans, limit)


@get("/v1/saved/{name:str}", query=("version",))
async def latest(name: FromPath[str], request: Asking, state: State) -> Response[bytes]:
    """The latest version of a name, whole; or the one that is asked for."""
    check_name(name)
    version = _number(request, "version", None, MAX_VERSION)
    store = await asyncio.to_thread(state.store.for_reading)
    plan = await asyncio.to_thread(_whole, store, name, version) if store else None
    if plan is None:
        raise await _nowhere(name, store, version)
    if plan.status is None:
        state.figures.compute(plan.name, plan.version)
    return _responded(SavedDocument(plan=plan), 200, {"ETag": _tag(plan)})


@get("/v1/saved/{name:str}/history", query=("before", "limit"))
async def history(name: FromPath[str], request: Asking, state: State) -> Response[bytes]:
    """Every version of a name, deleted or not, the latest first; of those `before` a version."""
    check_name(name)
    before, limit = _number(request, "before", None, MAX_VERSION), _number(request, "limit", SHOWN, MOST_SHOWN)
    store = await asyncio.to_thread(state.store.for_reading)
    versions = await asyncio.to_thread(store.history, name, before, limit) if store else []
    if not versions and before is None:
        raise await _nowhere(name, store)
    return _page(state, versions, limit)


@delete("/v1/saved/{name:str}", status_code=200, query=("history",))
async def remove(name: FromPath[str], request: Asking, state: State) -> Response[bytes]:
    """Delete a name. Its history stays, and goes on when the name is saved again; `history=true` deletes that too."""
    check_name(name)
    expected = _expected(request, None)
    with_history = request.query_params.get("history", "false")
    if with_history not in ("true", "false"):
        raise InvalidInput("history must be true or false. Got {with_history}.", with_history=shown(with_history))
    store = await asyncio.to_thread(state.store.for_reading)
    gone = (
        await asyncio.to_thread(lambda: store.delete(name, expected, history=with_history == "true"))
        if store
        else False
    )
    if not gone:
        raise await _nowhere(name, store)
    state.jobs.board.count("saved:delete")
    return _responded(DeletedDocument(deleted=name, history=with_history == "true"))


async def _answered(to_save: AskedSave, state: State) -> tuple[str, str, Digest]:
    """The verb, the question as JSON, and of the answer what is kept."""
    if to_save.job is not None:
        if to_save.verb is not None or to_save.question is not None:
            raise InvalidInput("a job has its own verb and question: give job, or verb and question.")
        return _of_job(state.jobs.board, to_save.job)
    if to_save.verb is None or to_save.question is None:
        raise InvalidInput(
            Message("what is saved is a verb with its question, or a job that has answered one: give them.")
        )
    question = encode(to_save.question).decode()
    return to_save.verb, question, await _digest(to_save.verb, to_save.question, state)


async def _digest(verb: str, question: dict[str, Any], state: State) -> Digest:
    """What is kept of the answer, where it was given a short while ago; else of a question whose figures follow."""
    answer = kept_answer(state.running, verb, question)
    if answer is not None:
        return digest_of(verb, answer)
    return unanswered(await asyncio.to_thread(checked_command, verb, question, state.settings.reach))


def _of_job(board: Board, job: str) -> tuple[str, str, Digest]:
    record = board.job(job)
    if record is None or record.state != DONE:
        state = "there is no such job" if record is None else f"it is {record.state}"
        raise InvalidInput("job must be one that is done: {state}. Got {job}.", state=state, job=shown(job))
    answer_digest = digest(
        record.verb, msgspec.json.decode(board.document(job)), record.status or 0, record.command or ""
    )
    question, _ = parted(msgspec.json.decode(board.question(job)))  # its answer is saved, in no language
    return record.verb, encode(question).decode(), answer_digest


def _asked(body: bytes) -> AskedSave:
    verb = msgspec.json.decode(body).get("verb")
    if isinstance(verb, str) and verb not in SAVED_VERBS:
        raise unknown("verb of a saved plan", verb, SAVED_VERBS)
    fields = msgspec.json.decode(body)
    for name in fields:
        if name not in FIELDS:
            raise unknown("field of a saved plan", name, FIELDS)
    if "name" not in fields:
        raise InvalidInput(
            Message('{@name} is needed: what is saved is {{"name": "...", "verb": "train", "question": {{...}}}}.')
        )
    for name, (form, takes) in FIELDS.items():
        value = fields.get(name)
        if (value is not None or name == "name") and (not isinstance(value, form) or isinstance(value, bool)):
            raise InvalidInput("{what} must be {span}. Got {text}.", what=name, span=takes, text=shown(value))
    if not 0 <= (fields.get("version") or 0) < 2**31:
        raise InvalidInput(
            "version must be {version}. Got {version2}.", version=FIELDS["version"][1], version2=fields["version"]
        )
    return msgspec.convert(fields, AskedSave)


def _expected(request: Asking, version: int | None) -> int | None:
    """The version that was seen: of If-Match, or of the body."""
    header = request.headers.get("if-match")
    if header is None:
        return version
    if header.strip() == "*":
        return ANY if version is None else version
    tag = _TAG.match(header.strip())
    if tag is None:
        raise InvalidInput(
            'If-Match must be the ETag of a version, such as "3", or *. Got {given}.', given=shown(header)
        )
    if version is not None and version != int(tag[1]):
        raise InvalidInput(
            "version and If-Match are the same here: give one. Got {said} and {found}.", said=version, found=tag[1]
        )
    return int(tag[1])


def _number(request: Asking, name: str, default: Any, most: int) -> Any:
    """A parameter of the query that is a number from 1."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and 1 <= int(text) <= most):
        raise InvalidInput("{what} must be from 1 to {most:,}. Got {text}.", what=name, most=most, text=shown(text))
    return int(text)


def _tag(plan: SavedPlan) -> str:
    return f'"{plan.version}"'


def _responded(
    document: msgspec.Struct,
    code: int = 200,
    headers: Mapping[str, str] | None = None,
    counted: BackgroundTask | None = None,
) -> Response[bytes]:
    """`counted`: what is counted of it when it is sent."""
    all_headers = {"Cache-Control": "no-store"} | dict(headers or {})
    return Response(encode(document), status_code=code, media_type=JSON, headers=all_headers, background=counted)


def _page(state: State, plans: list[SavedSummary], limit: int) -> Response[bytes]:
    """A page of `limit` entries; `plans` has one more where there is a next page."""
    for plan in plans[:limit]:
        if plan.status is None:
            state.figures.compute(plan.name, plan.version)
    return _responded(SavedPlansDocument(plans=plans[:limit], more=len(plans) > limit))


def _whole(store: "Store", name: str, version: int | None) -> SavedPlan | None:
    return store.latest(name) if version is None else store.version(name, version)


def _is_name(store: "Store", name: str) -> bool:
    """Whether any version of it is there."""
    return bool(store.history(name, limit=1))


async def _nowhere(name: str, store: "Store | None", version: int | None = None) -> Refusal:
    """The refusal of a name that is not saved, with the nearest that is; or of a version that there is not."""
    if version is not None and store and await asyncio.to_thread(_is_name, store, name):
        return Refusal(
            404,
            "NotFound",
            f"{shown(name)} has no version {version}: GET /v1/saved/NAME/history lists those that there are.",
        )
    near = await asyncio.to_thread(lambda: nearest(name, store.names())) if store else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return Refusal(404, "NotFound", f"no plan is saved as {shown(name)}.{hint}")


def conflicts(request: Asking, error: ConflictError) -> Response[bytes]:
    """409, with the ETag of the version that is there now."""
    request.app.state.jobs.board.count("saved:conflict")
    refusal = Refusal(409, "Conflict", str(error))
    return Response(
        refusal.body, status_code=409, media_type=JSON, headers={"ETag": f'"{error.version}"'} if error.version else {}
    )


def silent(request: Asking, error: StoreError) -> Response[bytes]:
    """503: the data base may answer again."""
    request.app.state.jobs.board.count("saved:failure")
    _log.error("the data base of saved plans: %s", error, exc_info=error.__cause__)
    refusal = Refusal(503, "StoreError", str(error))
    return Response(refusal.body, status_code=503, media_type=JSON, headers={"Retry-After": "10"})


HANDLERS = {ConflictError: conflicts, StoreError: silent}
ROUTES = [save, every, latest, history, remove]


def checked_command(verb: str, question: Mapping[str, Any], within: Reach) -> str:
    """The command line that asks the question; TonnageError where a field, its value or a name is wrong. Nothing is
    estimated.
    """
    with limited(within):
        return line(command(check(verb, question).form, question))
