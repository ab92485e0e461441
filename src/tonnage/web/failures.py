"""Every answer that is none: an ErrorDocument with its status."""

import logging
from typing import Any

from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException
from litestar.routes import HTTPRoute

from tonnage.errors import TonnageError, shown
from tonnage.registry import nearest
from tonnage.web.answer import Refusal, error_body, refusal
from tonnage.web.store.routes import HANDLERS as STORE

_log = logging.getLogger("tonnage.web")
KINDS = {404: "NotFound", 405: "NotAllowed", 413: "TooLarge"}
Asking = Request[Any, Any, Any]


def refused(_: Asking, error: Refusal) -> Response[bytes]:
    return Response(error.body, status_code=error.code, media_type=MediaType.JSON, headers=error.headers)


def wrong(request: Asking, error: TonnageError) -> Response[bytes]:
    return refused(request, refusal(error))


def http(request: Asking, error: HTTPException) -> Response[bytes]:
    """What the framework refuses: a path or a method that is not there, a header that is none."""
    code = error.status_code
    if code >= 500:
        _log.error("a request failed", exc_info=error)
    said = {404: nowhere, 405: other_method}[code](request) if code in (404, 405) else str(error.detail)
    body = error_body(KINDS.get(code, "NotUnderstood" if code < 500 else "Internal"), said)
    return Response(body, status_code=code, media_type=MediaType.JSON, headers=dict(error.headers or {}))


def nowhere(request: Asking) -> str:
    """Of a path that is none."""
    path = request.scope["path"]
    near = nearest(path, (each for each in methods_of(request) if "{" not in each))[:1]
    hint = f"Did you mean {near[0]}?" if near else "/schema/openapi.json lists every path."
    return f"nothing is at {shown(path)}. {hint}"


def other_method(request: Asking) -> str:
    """Of a path that takes other methods."""
    path, method = request.scope["path"], request.method
    taken = sorted({each for form, methods in methods_of(request).items() if _is_of(path, form) for each in methods})
    return f"{shown(path)} takes {' and '.join(taken)}. Got {method}."


def methods_of(request: Asking) -> dict[str, set[str]]:
    """Path -> its methods; OPTIONS, which every path has, is left out."""
    return {
        route.path: {str(each) for each in route.methods} - {"OPTIONS"}
        for route in request.app.routes
        if isinstance(route, HTTPRoute)
    }


def _is_of(path: str, form: str) -> bool:
    parts, forms = path.strip("/").split("/"), form.strip("/").split("/")
    return len(parts) == len(forms) and all(
        of.startswith("{") or of == part for part, of in zip(parts, forms, strict=True)
    )


def failed(_: Asking, error: Exception) -> Response[bytes]:
    _log.error("a request failed", exc_info=error)
    return Response(error_body("Internal", "the server failed; its log says why."), status_code=500, media_type=MediaType.JSON)  # fmt: skip


HANDLERS = {Refusal: refused, **STORE, TonnageError: wrong, HTTPException: http, Exception: failed}
