"""Requests within bounds: to one endpoint, along its redirects, with a limit of bytes and seconds.

The connection is huggingface_hub's, so that the user's proxies, certificates and offline switch apply.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, TonnageError, Unreachable, shown
from tonnage.kernel.message import Message

MAX_REDIRECTS = 5
WORKERS = 8
PATIENCE = 6  # seconds of a whole request, as a multiple of the timeout of one step
_PORTS = {"http": 80, "https": 443}
_HUB_ORIGINS = frozenset({("https", "huggingface.co", 443), ("https", "hf.co", 443)})


class Answer(Struct):
    """A response: status, headers with lower-case names, and at most as many bytes as were requested."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def total(self) -> int | None:
        """The size of the whole file, where the server states it."""
        text = (
            self.headers.get("content-range", "").rpartition("/")[2]
            if self.status == 206
            else self.headers.get("content-length", "")
        )
        return int(text) if text.isdecimal() and len(text) < 20 else None


def timeout() -> float:
    """Seconds that one step of a request may take: HF_HUB_DOWNLOAD_TIMEOUT, 10 by default."""
    from huggingface_hub import constants

    return constants.HF_HUB_DOWNLOAD_TIMEOUT


def get(
    url: str, endpoint: str, credentials: Mapping[str, str], largest: int, span: tuple[int, int] | None = None
) -> Answer:
    """GET a URL of `endpoint`. `span` is (first byte, number of bytes); without it the body must not exceed `largest`.

    `credentials` are headers for the endpoint's own host alone.
    """
    return within(lambda: _follow(url, endpoint, credentials, largest, span), PATIENCE * timeout(), _host(url))


def within(call: Callable[[], Any], seconds: float, host: str) -> Any:
    """The call's result; Unreachable after `seconds`, whatever the call is still waiting for."""
    results: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    threading.Thread(target=lambda: results.put(_outcome(call)), daemon=True).start()
    try:
        result, error = results.get(timeout=seconds)
    except Empty:
        raise Unreachable(
            Message("{host} did not answer within {seconds:.0f} seconds.", host=host, seconds=seconds)
        ) from None
    if error is not None:
        raise error
    return result


def call_each(items: Sequence[str], call: Callable[[str], Any]) -> list[Any]:
    """The call's result for every item, a few in parallel, in their order; the first error ends it."""
    if len(items) < 2:
        return [call(item) for item in items]
    results: SimpleQueue[tuple[int, tuple[Any, BaseException | None]]] = SimpleQueue()
    waiting = iter(enumerate(items))
    lock, stop = threading.Lock(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            with lock:
                number, item = next(waiting, (-1, ""))
            if number < 0:
                return
            results.put((number, _outcome(call, item)))

    for _ in range(min(WORKERS, len(items))):
        threading.Thread(target=work, daemon=True).start()
    outcomes: list[Any] = [None] * len(items)
    for _ in items:
        number, (result, error) = results.get()
        if error is not None:
            stop.set()
            raise error
        outcomes[number] = result
    return outcomes


def _outcome(call: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    try:
        return call(*arguments), None
    except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for it
        return None, error


def _follow(
    url: str, endpoint: str, credentials: Mapping[str, str], largest: int, span: tuple[int, int] | None
) -> Answer:
    trusted = {origin(endpoint), *_HUB_ORIGINS} if origin(endpoint) is not None else set()
    deadline = monotonic() + PATIENCE * timeout()
    for _ in range(MAX_REDIRECTS + 1):
        headers = dict(credentials) if origin(url) == origin(endpoint) else {}
        answer = _request(url, headers, largest, span, deadline)
        location = answer.headers.get("location")
        if answer.status not in (301, 302, 303, 307, 308) or not location:
            return answer
        url = next_url(url, location, endpoint, origin(url) in trusted)
    raise Unreachable(
        Message(
            "{host} redirects more than {most_redirects} times.", host=_host(endpoint), most_redirects=MAX_REDIRECTS
        )
    )


def next_url(url: str, location: str, endpoint: str, trusted: bool) -> str:
    """The target of a redirect, if it is allowed: anywhere on its own host; elsewhere only from the endpoint, never to
    a host inside this network unless the endpoint is inside too, never from https to http.
    """
    try:
        following = urljoin(url, location)
    except ValueError:
        following = ""
    target = origin(following)
    if target is None:
        raise Unreachable(Message("{host} redirects to what is no web address.", host=_host(url)))
    if target == origin(url):
        return following
    if not trusted or (url.startswith("https:") and target[0] != "https"):
        raise Unreachable(
            Message("{host} redirects to {target}, which is not followed.", host=_host(url), target=target[1])
        )
    if _is_inside(target[1]) and not _is_inside((urlsplit(endpoint).hostname or "").lower()):
        raise Unreachable(
            Message(
                "{host} redirects into this network ({target}), which is not followed.",
                host=_host(url),
                target=target[1],
            )
        )
    return following


def _is_inside(host: str) -> bool:
    from ipaddress import ip_address
    from socket import inet_aton

    try:
        return not ip_address(host).is_global
    except ValueError:
        pass
    try:
        return not ip_address(inet_aton(host)).is_global  # 127.1, 0x7f.1: as systems read addresses
    except (OSError, ValueError):
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal")) or "." not in host


def _request(url: str, headers: dict[str, str], largest: int, span: tuple[int, int] | None, deadline: float) -> Answer:
    if span is not None:
        headers["Range"] = f"bytes={span[0]}-{span[0] + span[1] - 1}"
    headers["Accept-Encoding"] = "identity"
    answer = _stream(url, headers, largest, span, deadline)
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise Unreachable(Message("{host} answers compressed although it was asked not to.", host=_host(url)))
    if span is not None and answer.status in (200, 206):
        answer.body = _part(answer, span)
    return answer


def _stream(
    url: str, headers: dict[str, str], largest: int, span: tuple[int, int] | None, deadline: float, again: bool = True
) -> Answer:
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
    from huggingface_hub.utils import get_session

    client_error: type[Exception] = HfHubHTTPError.__mro__[
        1
    ]  # HTTPError of the client library that huggingface_hub uses
    try:
        with get_session().stream("GET", url, headers=headers, timeout=timeout(), follow_redirects=False) as response:
            headers_by_name = {name.lower(): value for name, value in response.headers.items()}
            limit = _limit(response.status_code, largest, span)
            body = _body(response.iter_raw(), limit, url, deadline, cut=span is not None or response.status_code != 200)
            return Answer(response.status_code, headers_by_name, body, url)
    except OfflineModeIsEnabled:
        raise Unreachable(Message("offline mode (HF_HUB_OFFLINE) forbids to ask {host}.", host=_host(url))) from None
    except (client_error, OSError) as error:
        if again and type(error).__name__ in (
            "RemoteProtocolError",
            "ReadError",
        ):  # a reused connection that the server closed
            return _stream(url, headers, largest, span, deadline, again=False)
        raise Unreachable(Message("cannot reach {host}: {reason}.", host=_host(url), reason=_reason(error))) from None
    except TonnageError:
        raise
    except (ValueError, RuntimeError) as error:  # a URL or an answer that the client library refuses
        raise Unreachable(
            Message("{host} cannot be asked: {reason}.", host=_host(url), reason=_reason(error))
        ) from None


def _limit(status: int, largest: int, span: tuple[int, int] | None) -> int:
    if span is None:
        return largest if status == 200 else min(largest, 65_536)
    return span[0] + span[1] if status == 200 else span[1]


def _body(pieces: Iterable[bytes], limit: int, url: str, deadline: float, cut: bool) -> bytes:
    """The body, at most `limit` bytes; a longer one is cut, or refused."""
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) >= limit and cut:
            break
        if len(body) > limit:
            raise InvalidInput(
                "{host} sends more than {limit:,} bytes for {path}.",
                host=_host(url),
                limit=limit,
                path=urlsplit(url).path,
            )
        if monotonic() > deadline:
            raise Unreachable(Message("{host} was too slow with {path}.", host=_host(url), path=urlsplit(url).path))
    return bytes(body[:limit])


def _part(answer: Answer, span: tuple[int, int]) -> bytes:
    """The requested part of the body: some servers send the whole file from its start."""
    if answer.status == 200:
        return answer.body[span[0] :]
    content_range = answer.headers.get("content-range", "")
    if not content_range.replace(" ", "").lower().startswith(f"bytes{span[0]}-"):
        path = urlsplit(answer.url).path
        raise Unreachable(
            Message(
                "{host} sent another part of {path} than was asked for ({given}).",
                host=_host(answer.url),
                path=path,
                given=shown(content_range),
            )
        )
    return answer.body


def origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None for a text that is no http or https address."""
    try:
        parts: SplitResult = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme.lower(), 0)
    except ValueError:
        return None
    return (parts.scheme.lower(), host, port) if host and parts.scheme.lower() in _PORTS else None


def _host(url: str) -> str:
    address = origin(url)
    return address[1] if address else "the endpoint"


def _reason(error: BaseException) -> str:
    text = re.sub(r"^\[Errno -?\d+\] ", "", str(error).strip().rstrip(".")) or type(error).__name__
    return text.splitlines()[0][:200]
