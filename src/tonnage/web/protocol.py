"""uvicorn's HTTP, with an end to clients that are slow on purpose: headers have a size and a time, and so has an answer that nobody takes.

A server that ends does not wait for long answers, nor for who follows a job: what is not answered in a moment is left, and whoever asked asks again.
"""

import asyncio
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tonnage.web.settings import Limits

MOST_HEADER_BYTES = 32_768
END_OF_HEADERS = b"\r\n\r\n"
LAST_MOMENT = 0.5  # seconds that an answer may still take when the server ends


def protocol(limits: Limits) -> Any:
    """What uvicorn makes connections with."""
    return partial(Protocol, limits=limits)


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, limits: Limits, **named: Any):
        super().__init__(*arguments, **named)
        self._limits = limits
        self._in_headers, self._header_bytes, self._before = True, 0, b""
        self._headers_end: asyncio.TimerHandle | None = None
        self._send_end: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        if self._in_headers:
            # What comes behind them is a body's, and is measured there.
            end = (self._before + data).find(END_OF_HEADERS)
            self._header_bytes += len(data) if end < 0 else max(0, end - len(self._before))
            if self._header_bytes > MOST_HEADER_BYTES:
                self._leave()
                return
        super().data_received(data)
        self._before = data[1 - len(END_OF_HEADERS) :] if self._in_headers else b""

    def on_message_begin(self) -> None:
        if not self._in_headers:
            self._await_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop("_headers_end")
        super().on_headers_complete()

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

    def _await_headers(self) -> None:
        self._in_headers, self._header_bytes, self._before = True, 0, b""
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
