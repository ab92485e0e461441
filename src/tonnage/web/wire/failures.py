"""Every answer that is none: an ErrorDocument with its status."""

import logging
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException

from tonnage.kernel.errors import TonnageError, shown
from tonnage.kernel.message import Message, joined
from tonnage.kernel.registry import nearest
from tonnage.web.answer import PROBLEM, Refusal, error_body, refusal
from tonnage.web.store.routes import HANDLERS as STORE
from tonnage.web.wire.methods import allow, asked_method, methods_of, taken_methods

_log = logging.getLogger("tonnage.web")
KINDS = {404: "NotFound", 405: "NotAllowed", 413: "TooLarge"}
Asking = Request[Any, Any, Any]


def refused(_: Asking, error: Refusal) -> Response[bytes]:
    return Response(error.body, status_code=error.code, media_type=PROBLEM, headers=error.headers)


def wrong(request: Asking, error: TonnageError) -> Response[bytes]:
    return refused(request, refusal(error))


def http(request: Asking, error: HTTPException) -> Response[bytes]:
    """What the framework refuses: a path or a method that is not there, a header that is none."""
    code, headers = error.status_code, dict(error.headers or {})
    if code >= 500:
        _log.error("a request failed", exc_info=error)
    methods = taken_methods(request) if code == 405 else []
    if code == 405 and not methods:  # the page's route takes any path, and there is no such file
        code, headers = 404, {}
    message = str(error.detail)
    if code == 404:
        message = nowhere(request)
    if code == 405:
        message = Message(
            "{where} takes {allowed}. Got {value}.",
            where=shown(request.scope["path"]),
            allowed=joined(" and ", methods),
            value=asked_method(request),
        )
        headers = {"Allow": allow(methods)}
    body = error_body(code, KINDS.get(code, "NotUnderstood" if code < 500 else "Internal"), message)
    return Response(body, status_code=code, media_type=PROBLEM, headers=headers)


def nowhere(request: Asking) -> str:
    """The message for a path that does not exist."""
    path = request.scope["path"]
    near = nearest(path, (form for form in methods_of(request) if "{" not in form))[:1]
    hint = Message("Did you mean {near}?", near=near[0]) if near else "/schema/openapi.json lists every path."
    return Message("nothing is at {path}. {hint}", path=shown(path), hint=hint)


def failed(_: Asking, error: Exception) -> Response[bytes]:
    _log.error("a request failed", exc_info=error)
    return Response(
        error_body(500, "Internal", "the server failed; its log says why."), status_code=500, media_type=PROBLEM
    )


HANDLERS = {Refusal: refused, **STORE, TonnageError: wrong, HTTPException: http, Exception: failed}
