"""Around every request: who may ask, what every answer says to a browser, and the count of what was asked.

A browser can be made to send requests by any page that its user has open. A page of another site is told apart by
`Origin` and `Sec-Fetch-Site`, a name that points at this machine only for a moment (DNS rebinding) by `Host`; a body is
only read as JSON, which other sites may not send without asking first.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from litestar.types import ASGIApp, Receive, Scope, Send
from litestar.types import Message as Event

from tonnage.kernel.message import Message
from tonnage.web.answer import PROBLEM, error_body
from tonnage.web.metrics import Metrics
from tonnage.web.settings import Settings

ONLY_SELF = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
AS_HEAD = "tonnage_head"  # in the scope of a request that came as HEAD
HEADERS = [
    (b"content-security-policy", ONLY_SELF.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]


class Guard:
    """The application, guarded."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics):
        self._app, self._metrics = app, metrics
        self._names = frozenset({"localhost", *(name.lower() for name in settings.names)})
        self._loopback = settings.loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        start, code = perf_counter(), 500
        is_head = scope.get("method") == "HEAD"
        # Answered as GET is, and sent without the body. The server's own scope stays: by that it knows that none
        # follows.
        as_get: Any = {**scope, "method": "GET", AS_HEAD: True} if is_head else scope

        async def sent(message: Event) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            elif is_head and message["type"] == "http.response.body":
                message["body"] = b""
            await send(message)

        try:
            why = self._refused(scope)
            if why:
                await _refuse(sent, why)
            else:
                await self._app(as_get, receive, sent)
        finally:
            route = as_get.get("path_template") or "other"
            self._metrics.count(str(route), str(scope.get("method")), code, perf_counter() - start)

    def _refused(self, scope: Scope) -> str:
        """Why nobody who may ask sends such a request; "" where it is in order."""
        headers = _headers(scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return Message(
                "this server is not called {host!r}: ask it by its address, or start it with --names.", host=host[:80]
            )
        origin = headers.get("origin")
        if origin is not None and (urlsplit(origin).netloc.lower() if "://" in origin else "") != host.lower():
            return "a page of another site may not ask this server."
        if headers.get("sec-fetch-site") == "cross-site" and str(scope["path"]).startswith("/v1/"):
            return "a page of another site may not ask this server."
        return ""

    def _is_ours(self, host: str) -> bool:
        """An address is what a browser connects to; a name may point anywhere, and must be known."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._loopback


def _headers(scope: Scope) -> Mapping[str, str]:
    """The headers that are looked at. One that is sent twice is refused, as nobody who may ask sends it so."""
    headers: dict[str, Any] = {}
    for name, value in scope["headers"]:
        if name in (b"host", b"origin", b"sec-fetch-site"):
            text = name.decode()
            headers[text] = value.decode("latin-1") if text not in headers else "twice"
    return headers


async def _refuse(send: Send, why: str) -> None:
    body = error_body(403, "Forbidden", why)
    headers = [(b"content-type", PROBLEM.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
