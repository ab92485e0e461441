"""uvicorn's HTTP, with an end to clients that are slow on purpose: headers have a size and a time, and so has an answer
that nobody takes.

When all places for connections are taken, a new connection gets the place of the one that has owed the server something
for longest: headers, a body, or the next request. So clients that open connections and send nothing keep nobody from
being answered.

A server that ends does not wait for long answers, nor for who follows a job: what is not answered in a moment is left,
and whoever asked asks again.
"""

import asyncio
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tonnage.kernel.message import Message
from tonnage.web.answer import PROBLEM, error_body
from tonnage.web.settings import Limits
from tonnage.web.wire.guard import HEADERS

MAX_HEADER_BYTES = 32_768  # of the path and all headers of a request, and of what is neither headers nor body
PIECE = 4096  # bytes that are read before what came is measured
LAST_MOMENT = 0.5  # seconds that an answer may still take when the server ends
# The rest of a refused request is read and dropped: a client that sends all of it before it reads the answer would hear
# of a broken connection
# instead (RFC 9112, 9.6). Headers have a bound of bytes, a body one of time (`body_seconds`), and both end when nothing
# comes for a while.
DROPPED_HEADER_BYTES, SILENT_SECONDS = 1_000_000, 2.0


def protocol(limits: Limits) -> Any:
    """What uvicorn makes connections with; one call is for all connections of a process."""
    return partial(Protocol, limits=limits, waiting={})


class TooLongError(Exception):
    """The headers of a request are too long."""


class Protocol(HttpToolsProtocol):
    """A connection of one client."""

    def __init__(self, *arguments: Any, limits: Limits, waiting: "dict[Protocol, None]", **named: Any):
        super().__init__(*arguments, **named)
        self._limits = limits
        self.tasks = _Tasks(self.tasks)  # type: ignore[assignment]
        self._waiting = waiting  # connections whose client owes something, the one that has for longest first
        self._is_whole = True  # no request is on its way: all of the last one has come
        self._in_headers = True
        self._header_bytes = 0  # of names and values that are whole
        self._came = 0  # bytes since the request began, of pieces without anything of a body
        self._is_told = False  # that it is refused: nothing of what still comes is read
        self._dropped_most: int | None = None  # bytes of what still comes that are read; None: any number
        self._dropped_bytes = 0
        self._headers_end: asyncio.TimerHandle | None = None
        self._send_end: asyncio.TimerHandle | None = None
        self._body_end: asyncio.TimerHandle | None = None
        self._silent_end: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        while len(self.connections) >= self._limits.connections and self._waiting:
            next(iter(self._waiting))._give_up_place()
        self._wait()
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE):
            if self._is_told or self.transport.is_closing():
                break
            piece = data[at : at + PIECE]
            self._came += len(piece)
            super().data_received(piece)
            if self._came > MAX_HEADER_BYTES + PIECE and not self._is_told:  # of one header that has no end
                self.send_400_response("")
        if self._is_told:
            self._drop(len(data))

    def on_message_begin(self) -> None:
        self._is_whole = False
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
        self.cycle.transport = _GentlyClosed(self)  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        self._is_whole = True
        self._stop("_body_end")
        if self.cycle is not None and not self.cycle.response_complete:
            self._waiting.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()
        if not self._is_whole and not self._is_told:  # nobody reads the body, and it is not to come for ever
            self._stop("_body_end")
            self._body_end = self.loop.call_later(self._limits.body_seconds, self._leave)

    def close(self) -> None:
        """End the connection; where a request is still on its way, drop the rest of it first."""
        if self._is_whole or self.transport.is_closing():
            self.transport.close()
        else:
            self._drop_rest(None, self._limits.body_seconds)

    def on_body(self, body: bytes) -> None:
        self._came = 0  # it is measured where it is read
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls where it does not understand a request, and we where it is too long: the error, and the
        end of the connection.
        """
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
        self._drop_rest(DROPPED_HEADER_BYTES, SILENT_SECONDS)

    def _drop_rest(self, most: int | None, seconds: float) -> None:
        """Say that nothing more is sent, and drop what still comes until its sender has read that and ends the
        connection, or until a bound.
        """
        self._is_told, self._dropped_most = True, most
        self._wait()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._stop("_end")
        self._end = self.loop.call_later(seconds, self._leave)
        self._drop(0)

    def _drop(self, size: int) -> None:
        self._dropped_bytes += size
        if self._dropped_most is not None and self._dropped_bytes > self._dropped_most:
            self._leave()
            return
        self._stop("_silent_end")
        self._silent_end = self.loop.call_later(SILENT_SECONDS, self._leave)

    def _wait(self) -> None:
        """The client owes something from now on."""
        self._waiting.pop(self, None)
        if not self.transport.is_closing():
            self._waiting[self] = None

    def _give_up_place(self) -> None:
        self._waiting.pop(self, None)
        self.connections.discard(self)
        self.tasks.forget()  # type: ignore[attr-defined]
        self._leave()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait()  # it owes to take its answer
        self._stop("_send_end")
        self._send_end = self.loop.call_later(self._limits.send_seconds, self._leave)

    def resume_writing(self) -> None:
        self._stop("_send_end")
        if self.cycle is not None and not self.cycle.response_complete and self._is_whole:
            self._waiting.pop(self, None)
        super().resume_writing()

    def shutdown(self) -> None:
        super().shutdown()
        self._stop("_end")
        self._end = self.loop.call_later(LAST_MOMENT, self._leave)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.pop(self, None)
        for timer in ("_headers_end", "_send_end", "_body_end", "_silent_end", "_end"):
            self._stop(timer)
        super().connection_lost(exc)

    def _count(self, more: int) -> None:
        self._header_bytes += more
        if self._header_bytes > MAX_HEADER_BYTES:
            raise TooLongError  # the parser ends, and uvicorn calls send_400_response

    def _refusal(self) -> bytes:
        """The response to a request that is too long, or is no HTTP."""
        why: str
        if self._header_bytes > MAX_HEADER_BYTES or self._came > MAX_HEADER_BYTES:
            code, kind, why = (
                431,
                "TooLarge",
                Message(
                    "the path and the headers of a request have at most {most_header_bytes:,} bytes.",
                    most_header_bytes=MAX_HEADER_BYTES,
                ),
            )
        else:
            code, kind, why = 400, "NotUnderstood", "this is no request of HTTP/1.1."
        body = error_body(code, kind, why)
        headers = [
            (b"content-type", PROBLEM.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *HEADERS,
        ]
        return b"".join([STATUS_LINE[code], *(b"%s: %s\r\n" % header for header in headers), b"\r\n", body])

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
        """Close the connection, without waiting until a client takes what is still to be sent."""
        if self.transport is not None:
            self.transport.abort()


class _Tasks:
    """The tasks of one connection within those of all, whose number uvicorn bounds. Those of a connection that was
    given up end a moment after it, and hold no place until then.
    """

    def __init__(self, shared: "set[asyncio.Task[None]]"):
        self._shared = shared
        self._own: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._shared)

    def add(self, task: "asyncio.Task[None]") -> None:
        self._own.add(task)
        self._shared.add(task)

    def discard(self, task: "asyncio.Task[None]") -> None:
        self._own.discard(task)
        self._shared.discard(task)

    def forget(self) -> None:
        """Count this connection's tasks no more."""
        self._shared.difference_update(self._own)


class _GentlyClosed:
    """The transport as a request's answer sees it: closing it does not cut off a client that still sends."""

    def __init__(self, connection: Protocol):
        self._connection = connection
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing

    def close(self) -> None:
        self._connection.close()
