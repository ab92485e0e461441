"""Which methods a path takes: HEAD wherever GET is, save of a stream, which has no end; and OPTIONS."""

import re
from functools import cache
from typing import Any

from litestar import Request, Response
from litestar.exceptions import MethodNotAllowedException, NotFoundException
from litestar.routes import HTTPRoute

from tonnage.web.pages import FILE, files
from tonnage.web.wire.guard import AS_HEAD
from tonnage.web.wire.query import check_query

Asking = Request[Any, Any, Any]
STREAM = "/events"


async def before(request: Asking) -> Response[bytes] | None:
    """What every request passes: its query, and a method that its path takes; OPTIONS is answered here. It waits for
    nothing: as a plain function each request would pass a thread for it.
    """
    check_query(request)
    method = asked_method(request)
    if method not in ("OPTIONS", "HEAD"):
        return None
    methods = taken_methods(request)
    if not methods:
        raise NotFoundException
    if method == "HEAD":
        if "HEAD" not in methods:
            raise MethodNotAllowedException
        return None
    return Response(b"", status_code=204, headers={"Allow": allow(methods)})


def asked_method(request: Asking) -> str:
    """The method of the request as it came."""
    return "HEAD" if AS_HEAD in request.scope else str(request.method)


def allow(methods: list[str]) -> str:
    """The header."""
    return ", ".join(sorted([*methods, "OPTIONS"]))


def methods_of(request: Asking) -> dict[str, set[str]]:
    """Form of each path -> its methods, save OPTIONS, which every path takes."""
    return {
        route.path: {str(method) for method in route.methods} - {"OPTIONS"}
        for route in request.app.routes
        if isinstance(route, HTTPRoute)
    }


def taken_methods(request: Asking) -> list[str]:
    """The methods that the requested path takes; none where there is no such path."""
    path = request.scope["path"]
    matching: set[str] = set()
    for form, methods in methods_of(request).items():
        if _pattern(form).fullmatch(path) and (form != FILE or path.removeprefix("/") in files()):
            matching |= methods | ({"HEAD"} if "GET" in methods and not form.endswith(STREAM) else set())
    return sorted(matching)


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """The expression for the form of a path: {name:str} is one part of it, {name:path} all that follows."""
    parts = [
        ".+" if part.endswith(":path}") else "[^/]+" if part.startswith("{") else re.escape(part)
        for part in form.strip("/").split("/")
    ]
    return re.compile("/" + "/".join(parts) + "/?", re.DOTALL)
