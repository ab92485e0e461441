"""uvicorn's HTTP, with an end to clients that are slow on purpose: headers have a size and a time, and so has an answer that nobody takes.

A server that ends does not wait for long answers, nor for who follows a job: what is not answered in a moment is left, and whoever asked asks again.
"""

import asyncio
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tonnage.web.answer import error_body
from tonnage.web.guard import HEADERS
from tonnage.web.settings import Limits

MOST_HEADER_BYTES = 32_768  # of the path and all headers of a request, and of what is neither headers nor body
PIECE = 4096  # bytes that are read before what came is measured
LAST_MOMENT = 0.5  # seconds that an answer may still take when the server ends
# Of a request that is refused as much is still read: who sends all of it before it reads an answer would hear of a broken connection alone.
READ_ON_BYTES, READ_ON_SECONDS = 1_000_000, 2.0


def protocol(limits: Limits) -> Any:
    """What uvicorn makes connections with."""
    return partial(Protocol, limits=limits)


class TooLongError(Exception):
    """The headers are."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, limits: Limits, **named: Any):
        super().__init__(*arguments, **named)
        self._limits = limits
        self._in_headers = True
        self._header_bytes = 0  # of names and values that are whole
        self._came = 0  # bytes since the request began, of pieces without anything of a body
        self._is_told = False  # that it is refused: nothing of what still comes is read
        self._told_bytes = 0
        self._headers_end: asyncio.TimerHandle | None = None
        self._send_end: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE):
            if self._is_told or self.transport.is_closing():
                break
            piece = data[at : at + PIECE]
            self._came += len(piece)
            super().data_received(piece)
            if self._came > MOST_HEADER_BYTES + PIECE and not self._is_told:  # of one header that has no end
                self.send_400_response("")
        if self._is_told:
            self._told_bytes += len(data)
            if self._told_bytes > READ_ON_BYTES:
                self._leave()

    def on_message_begin(self) -> None:
        if not self._in_headers:
            self._await_headers()
        self._header_bytes = self._came = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + len(b": \r\n"))  # those that follow a body in chunks, too
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop("_headers_end")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._came = 0  # it is measured where it is read
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls where it does not understand a request, and we where it is too long: the error, and the end of the connection."""
        cycle, self._is_told = self.cycle, True
        self._stop("_headers_end")
        is_open = cycle is not None and not cycle.response_complete
        if is_open and self._in_headers:  # an earlier request is still answered: whoever asked that hears it
            cycle.keep_alive = False
            return
        if is_open and (cycle.response_started or self.pipeline):
            self._leave()
            return
        if is_open:  # its body is what is wrong
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(self._refusal())
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._stop("_end")
        self._end = self.loop.call_later(READ_ON_SECONDS, self._leave)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop("_send_end")
        self._send_end = self.loop.call_later(self._limits.send_seconds, self._leave)

    def resume_writing(self) -> None:
        self._stop("_send_end")
        super().resume_writing()

    def shutdown(self) -> None:
        super().shutdown()
        self._stop("_end")
        self._end = self.loop.call_later(LAST_MOMENT, self._leave)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop("_headers_end")
        self._stop("_send_end")
        self._stop("_end")
        super().connection_lost(exc)

    def _count(self, more: int) -> None:
        self._header_bytes += more
        if self._header_bytes > MOST_HEADER_BYTES:
            raise TooLongError  # the parser ends, and uvicorn calls send_400_response

    def _refusal(self) -> bytes:
        """Of a request that is too long, or is no HTTP."""
        if self._header_bytes > MOST_HEADER_BYTES or self._came > MOST_HEADER_BYTES:
            code, kind, why = 431, "TooLarge", f"the path and the headers of a request have at most {MOST_HEADER_BYTES:,} bytes."  # fmt: skip
        else:
            code, kind, why = 400, "NotUnderstood", "this is no request of HTTP/1.1."
        body = error_body(kind, why)
        said = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"connection", b"close"), *HEADERS]  # fmt: skip
        return b"".join([STATUS_LINE[code], *(b"%s: %s\r\n" % each for each in said), b"\r\n", body])

    def _await_headers(self) -> None:
        self._in_headers = True
        self._stop("_headers_end")
        self._headers_end = self.loop.call_later(self._limits.header_seconds, self._leave)

    def _stop(self, name: str) -> None:
        timer: asyncio.TimerHandle | None = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)

    def _leave(self) -> None:
        """Without waiting until a client takes what is still to be sent."""
        if self.transport is not None:
            self.transport.abort()
