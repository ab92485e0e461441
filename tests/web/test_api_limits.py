"""What one client takes, others keep: time, memory, places and lines have an end."""

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import closing
from errno import ENOMEM
from pathlib import Path
from threading import Event

import pytest
from litestar.testing import TestClient

from tonnage.kernel.reach import Reach
from tonnage.web.answer import EncodedAnswer, Refusal, answered
from tonnage.web.app import create_app
from tonnage.web.process.pool import Pool
from tonnage.web.settings import Limits, Settings
from tonnage.web.wire.answer_cache import AnswerCache
from web.conftest import HERE, Client
from web.live import live

NOWHERE = Reach(files=None, hubs=False, machine=False)
# Minutes of work: every step of every request is played.
ENDLESS = {"model": "llama-3.1-8b", "on": "h100", "simulate": True, "num_requests": 1_000_000}
GIB = 2**30


def pooled(
    verb: str, question: dict, *, seconds: float = 60, memory: int = 4 * GIB, again: int = 1, left: Event | None = None
):
    """What a pool of one process answers, so many times."""

    async def ask() -> list[EncodedAnswer | Refusal]:
        pool = Pool(1, seconds, NOWHERE, memory)
        found: list[EncodedAnswer | Refusal] = []
        try:
            for _ in range(again):
                try:
                    found.append(await pool.answered(verb, question, left or Event()))
                except Refusal as refused:
                    found.append(refused)
            found.append(await pool.answered("explain", {"name": "k"}, Event()))
        finally:
            await pool.close()
        return found

    return asyncio.run(ask())


def test_an_answer_that_takes_too_long_is_ended_and_the_next_is_given():
    refused, after = pooled("serve", ENDLESS, seconds=0.3)
    assert (refused.code, refused.kind) == (422, "TooLong")
    assert "0.3 seconds" in refused.message and "/v1/jobs" in refused.message
    assert isinstance(after, EncodedAnswer)


def test_an_answer_whose_client_has_left_is_ended():
    left = Event()
    start = time.monotonic()

    async def ask() -> None:
        pool = Pool(1, 600, NOWHERE, 4 * GIB)
        try:
            asked = asyncio.create_task(pool.answered("serve", ENDLESS, left))
            await asyncio.sleep(0)
            left.set()
            with pytest.raises(Refusal):
                await asked
        finally:
            await pool.close()

    asyncio.run(ask())
    assert time.monotonic() - start < 60


def held() -> int:
    """Bytes of addresses that a process has when it has answered something small."""

    async def ask() -> int:
        pool = Pool(1, 60, NOWHERE, 4 * GIB)
        try:
            await pool.answered("explain", {"name": "k"}, Event())
            worker = pool._idle[-1]
            pages = int(Path(f"/proc/{worker.process.pid}/statm").read_text().split()[0])
            return pages * os.sysconf("SC_PAGE_SIZE")
        finally:
            await pool.close()

    return asyncio.run(ask())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not say how large a process is")
def test_an_answer_that_takes_too_much_memory_is_refused_and_the_next_is_given():
    refused, after = pooled("models", {}, memory=held() + 1_000_000)
    assert (refused.code, refused.kind) == (422, "TooLarge")
    assert isinstance(after, EncodedAnswer)


def test_a_process_that_answers_does_not_look_through_its_modules_for_garbage():
    told = "import gc, tonnage.web.process.warm; print(gc.get_freeze_count(), len(gc.get_objects()))"
    done = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True)
    kept, looked_through = map(int, done.stdout.split())
    assert kept > 10_000
    assert looked_through < 1_000


def test_a_system_that_has_no_memory_to_open_a_file_is_no_failure_of_the_server(monkeypatch):
    def full(*_: object) -> None:
        raise OSError(ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("tonnage.web.answer._asked", full)
    refused = answered("explain", {"name": "k"}, NOWHERE)
    assert (refused.code, refused.kind) == (422, "TooLarge")


def test_a_process_that_the_system_ends_is_replaced(monkeypatch):
    async def ask() -> tuple[EncodedAnswer, EncodedAnswer]:
        pool = Pool(1, 60, NOWHERE, 4 * GIB)
        try:
            first = await pool.answered("explain", {"name": "k"}, Event())
            worker = pool._idle[-1]
            worker.process.kill()
            worker.process.join()
            with pytest.raises(Refusal, match="TooLarge"):
                await pool.answered("explain", {"name": "k"}, Event())
            return first, await pool.answered("explain", {"name": "k"}, Event())
        finally:
            await pool.close()

    first, second = asyncio.run(ask())
    assert first == second


@pytest.mark.parametrize("turns", [1, 2, 6])
def test_a_question_that_is_given_up_leaves_its_process_to_the_next(turns):
    async def ask() -> tuple[EncodedAnswer, int]:
        pool = Pool(1, 60, NOWHERE, 4 * GIB)
        try:
            given_up = asyncio.create_task(pool.answered("explain", {"name": "k"}, Event()))
            for _ in range(turns):
                await asyncio.sleep(0)
            given_up.cancel()
            answer = await pool.answered("explain", {"name": "k"}, Event())
            return answer, len(pool._workers)
        finally:
            await pool.close()

    answer, workers = asyncio.run(asyncio.wait_for(ask(), 60))
    assert isinstance(answer, EncodedAnswer)
    assert workers == 1


def test_a_pool_that_is_closed_has_closed_the_line_of_a_process_that_was_being_ended():
    async def ask() -> int:
        pool = Pool(1, 60, NOWHERE, 4 * GIB)
        await pool.answered("explain", {"name": "k"}, Event())
        worker = pool._idle[-1]
        endless = asyncio.create_task(pool.answered("serve", ENDLESS, Event()))
        await asyncio.sleep(0)
        endless.cancel()
        await asyncio.sleep(0)
        await pool.close()
        return worker.line.fileno()

    assert asyncio.run(ask()) == -1


def test_who_comes_when_all_places_are_taken_is_told_to_come_again():
    with TestClient(create_app(Settings(hub=False, limits=Limits(at_once=0))), base_url=HERE) as made:
        answer = made.post("/v1/explain", json={"name": "k"})
    assert answer.status_code == 503 and answer.headers["Retry-After"] == "1"
    assert answer.json()["error"]["kind"] == "Busy"


# ---- answers that are kept ----


def test_the_same_question_is_answered_from_memory(monkeypatch):
    with TestClient(create_app(Settings(hub=False)), base_url=HERE) as made:
        first = made.post("/v1/explain", json={"name": "k"})
        monkeypatch.setattr(made.app.state.running, "answered", None)
        assert made.post("/v1/explain", json={"name": "k"}).content == first.content


def test_nothing_is_kept_where_the_owner_says_so():
    kept = AnswerCache(0, 300)
    kept.put("train", b"{}", EncodedAnswer(b"{}"))
    assert kept.get("train", b"{}") is None


def test_what_is_kept_has_a_size_and_an_age(monkeypatch):
    kept = AnswerCache(10_000, 300)
    for number in range(100):
        kept.put("train", str(number).encode(), EncodedAnswer(b"x" * 1000))
    held = [number for number in range(100) if kept.get("train", str(number).encode())]
    assert held == list(range(94, 100))
    kept.put("train", b"large", EncodedAnswer(b"x" * 5000))
    assert kept.get("train", b"large") is None
    assert kept.get("serve", b"99") is None
    now = time.monotonic()
    monkeypatch.setattr("tonnage.web.wire.answer_cache.monotonic", lambda: now + 301)
    assert kept.get("train", b"99") is None


def test_refusals_are_not_kept(client: Client):
    for _ in range(2):
        assert client.post("/v1/explain", json={"name": "no_such_thing_at_all"}).status_code == 400


# ---- how it is sent ----


def test_a_large_answer_is_packed_for_who_asks_for_that(client: Client):
    question = {"model": "llama-3.1-8b", "on": "8xh100"}
    plain = client.post("/v1/train", json=question, headers={"Accept-Encoding": "identity"})
    packed = client.post("/v1/train", json=question, headers={"Accept-Encoding": "gzip, br"})
    assert "Content-Encoding" not in plain.headers and packed.headers["Content-Encoding"] == "gzip"
    assert packed.content == plain.content  # the client unpacks
    assert int(packed.headers["Content-Length"]) < len(plain.content) / 5
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert plain.headers["Cache-Control"] == packed.headers["Cache-Control"] == "no-store"


def test_the_files_of_the_page_keep_their_bytes(client: Client):
    page = client.get("/", headers={"Accept-Encoding": "gzip"})
    assert page.headers["ETag"] and "Content-Encoding" not in page.headers


# ---- slow and broken clients, on a real line ----


def line(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def is_well(port: int) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as asked:
        asked.request("GET", "/healthz")
        return asked.getresponse().status == 200


@pytest.fixture(scope="module")
def impatient():
    limits = Limits(header_seconds=0.2, body_seconds=0.2, send_seconds=0.2, connections=50)
    with live(Settings(port=0, hub=False, limits=limits)) as port:
        yield port


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "],
    ids=["nothing", "a line", "headers"],
)
def test_who_does_not_send_all_headers_is_left(impatient, sent):
    with line(impatient) as held:
        held.sendall(sent)
        assert held.recv(1000) == b""
    assert is_well(impatient)


def test_who_does_not_send_all_of_a_body_is_told_and_left(impatient):
    with line(impatient) as held:
        held.sendall(
            b"POST /v1/train HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        )
        answer = held.recv(10_000)
        assert answer.startswith(b"HTTP/1.1 408") and b"did not come within" in answer + held.recv(10_000)
    assert is_well(impatient)


def test_who_sends_headers_without_end_is_left(impatient):
    with line(impatient) as held, pytest.raises(ConnectionError):
        held.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        for number in range(10_000):
            held.sendall(f"X-{number}: {'x' * 1000}\r\n".encode())
    assert is_well(impatient)


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
ONE_HEADER = b"X-Big: %s\r\n"
CHUNKED = b"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"


@pytest.fixture(scope="module")
def patient():
    with live(Settings(port=0, hub=False)) as port:
        yield port


def status_of(held: socket.socket) -> tuple[int, dict]:
    """Of the next answer on a line, with its document."""
    answer = http.client.HTTPResponse(held)
    answer.begin()
    return answer.status, json.loads(answer.read())


@pytest.mark.parametrize("kept", [False, True], ids=["the first request of a line", "the second"])
@pytest.mark.parametrize(
    ("size", "code"), [(32_500, 200), (32_700, 200), (32_768, 431), (40_000, 431), (66_000, 431), (200_000, 431)]
)
def test_headers_have_one_limit_on_every_request_of_a_line(patient, size, code, kept):
    with line(patient) as held:
        if kept:
            held.sendall(HEALTH % b"")
            assert status_of(held)[0] == 200
        held.sendall(HEALTH % (ONE_HEADER % (b"x" * size)))
        status, document = status_of(held)
        assert status == code
        if code == 431:
            assert document["error"]["kind"] == "TooLarge" and "32,768 bytes" in document["error"]["message"]
            assert held.recv(10) == b""  # and the line ends
    assert is_well(patient)


TOO_LONG = {
    "many headers": HEALTH % b"".join(b"X-%d: %s\r\n" % (number, b"x" * 100) for number in range(400)),
    "a path": b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * 40_000),
    "a header without end": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Big: " + b"x" * 50_000,
    "headers behind a body": CHUNKED + b"0\r\n" + ONE_HEADER % (b"x" * 100) * 400 + b"\r\n",
    "a header without end behind a body": CHUNKED + b"0\r\nX-Big: " + b"x" * 50_000,
}


@pytest.mark.parametrize("sent", TOO_LONG.values(), ids=TOO_LONG.keys())
def test_who_sends_too_much_beside_a_body_is_told(patient, sent):
    with line(patient) as held:
        held.sendall(sent)
        status, document = status_of(held)
        assert status == 431 and document["error"]["kind"] == "TooLarge"


def test_who_asks_before_a_request_that_is_too_long_still_hears_the_answer(patient):
    asked = json.dumps({"model": "llama-3.1-8b", "on": "8xh100"}).encode()
    with line(patient) as held:
        held.sendall(
            b"POST /v1/train HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(asked)
            + asked
            + HEALTH % (ONE_HEADER % (b"x" * 40_000))
        )
        status, document = status_of(held)
        assert status == 200 and "verdict" in document
        assert held.recv(10) == b""


def test_a_long_body_in_small_chunks_is_no_header(patient):
    with line(patient) as held:
        held.sendall(CHUNKED.removesuffix(b"2\r\n{}\r\n"))
        held.sendall(b"1\r\n{\r\n" + b"1\r\n \r\n" * 50_000 + b'b\r\n"name":"k"}\r\n0\r\n\r\n')
        assert status_of(held)[0] == 200


def test_who_takes_nothing_of_an_answer_is_left(impatient):
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        held.settimeout(30)
        held.connect(("127.0.0.1", impatient))
        asked = b"GET /schema/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with pytest.raises(ConnectionError):  # the answers fill the line, and the server ends it
            while True:
                held.sendall(asked)
    assert is_well(impatient)


def test_who_speaks_something_else_is_told(impatient):
    for sent in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HELO me\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\0" * 100,
    ):
        with line(impatient) as held:
            held.sendall(sent)
            status, document = status_of(held)
            assert status == 400 and document["error"]["kind"] == "NotUnderstood"
    assert is_well(impatient)


@pytest.mark.parametrize("cut", [0, 2], ids=["at once", "cut inside the end of its headers"])
def test_a_large_body_that_comes_together_with_its_headers_is_read(cut):
    body = json.dumps({"name": "k", "": "x" * 900_000}).encode()
    head = (
        b"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(body)
    )
    with live(Settings(port=0, hub=False)) as port, line(port) as held:
        for _ in range(2):  # of two requests on one line
            held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            held.sendall(head[: len(head) - cut])
            time.sleep(0.05 if cut else 0)
            held.sendall(head[len(head) - cut :] + body)
            answer = held.recv(100_000)
            assert answer.startswith(b"HTTP/1.1 400") and b"a field is named as an option" in answer + (
                b"" if answer.endswith(b"}") else held.recv(100_000)
            )


def test_a_body_of_any_size_is_not_waited_for(impatient):
    with line(impatient) as held:
        held.sendall(
            b"POST /v1/train HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 90000000000\r\n\r\n{"
        )
        assert held.recv(10_000).startswith(b"HTTP/1.1 413")
    assert is_well(impatient)


def test_two_lengths_of_a_body_are_refused(impatient):
    with line(impatient) as held:
        held.sendall(
            b"POST /v1/train HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{}"
        )
        assert held.recv(1000).startswith(b"HTTP/1.1 400")


def test_a_real_line_gives_the_document(impatient):
    with closing(http.client.HTTPConnection("127.0.0.1", impatient, timeout=60)) as asked:
        asked.request("POST", "/v1/explain", json.dumps({"name": "k"}), {"Content-Type": "application/json"})
        answer = asked.getresponse()
        assert answer.status == 200 and json.loads(answer.read())["kind"] == "symbol"
        assert answer.headers["Server"] is None
