"""Clients that open connections and owe the server something, and clients that send more than is read."""

import http.client
import json
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from resource import RLIMIT_NOFILE, getrlimit

import pytest

from tonnage.web.settings import Limits, Settings
from web.live import live

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
OWED = {
    "everything": b"",
    "the rest of the headers": b"GET /healthz HTTP/1.1\r\nHost: local",
    "the body": POST % 100 + b"{",
    "the body of a request that is answered already": HEALTH.replace(b"\r\n\r\n", b"\r\nContent-Length: 100\r\n\r\n"),
    "the next request": HEALTH,
}


def line(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def health(port: int) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as asked:
        asked.request("GET", "/healthz")
        return asked.getresponse().status


@pytest.mark.parametrize("sent", OWED.values(), ids=OWED.keys())
def test_connections_that_owe_something_keep_nobody_from_being_answered(sent):
    """The limits of time are far longer than this test: only their number ends these connections."""
    limits = Limits(connections=20, header_seconds=600, body_seconds=600)
    with live(Settings(port=0, hub=False, limits=limits)) as port, ExitStack() as held:
        for _ in range(60):
            client = held.enter_context(line(port))
            client.sendall(sent)
            if sent.startswith(b"GET") and sent.endswith(b"\r\n\r\n"):  # it is answered, and owes more
                assert client.recv(10_000).startswith(b"HTTP/1.1 200")
        assert [health(port) for _ in range(5)] == [200] * 5


def test_the_connection_that_has_owed_something_for_longest_is_given_up():
    with live(Settings(port=0, hub=False, limits=Limits(connections=3))) as port, ExitStack() as held:
        first, second = (held.enter_context(line(port)) for _ in range(2))
        first.sendall(HEALTH)
        assert first.recv(10_000).startswith(b"HTTP/1.1 200")  # now the second has waited for longer
        third = held.enter_context(line(port))
        third.sendall(HEALTH)
        assert third.recv(10_000).startswith(b"HTTP/1.1 200")
        assert second.recv(10) == b""
        first.sendall(HEALTH)
        assert first.recv(10_000).startswith(b"HTTP/1.1 200")


def test_who_comes_when_all_places_are_taken_by_requests_that_are_answered_is_refused():
    """They owe nothing: each follows a job that waits."""
    from tonnage.web.jobs.limits import JobLimits

    settings = Settings(port=0, hub=False, limits=Limits(connections=5), jobs=JobLimits(at_once=0))
    with live(settings) as port, ExitStack() as held:
        body = json.dumps({"verb": "compare", "question": {"model": "llama-3.1-8b", "on": "h100"}})
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as asked:
            asked.request("POST", "/v1/jobs", body, {"Content-Type": "application/json"})
            job = json.load(asked.getresponse())["id"]
        for _ in range(4):
            followed = held.enter_context(line(port))
            followed.sendall(b"GET /v1/jobs/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n" % job.encode())
            assert followed.recv(1000).startswith(b"HTTP/1.1 200")
        refused = held.enter_context(line(port))
        refused.sendall(HEALTH)
        assert refused.recv(1000).startswith(b"HTTP/1.1 503")


OPEN_FILES = """
import resource
from tonnage.web.process.run import with_room_for_connections
from tonnage.web.settings import Limits
resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))
limits = with_room_for_connections(Limits(connections=1000))
print(limits.connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("hard", "connections", "files"), [(4096, 1000, 1200), (512, 312, 512)])
def test_as_many_files_may_be_open_as_there_are_places_or_there_are_fewer_places(hard, connections, files):
    assert getrlimit(RLIMIT_NOFILE)[1] >= hard
    done = subprocess.run(
        [sys.executable, "-c", OPEN_FILES.format(hard=hard)], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == [str(connections), str(files)]


REFUSED = {
    "too large": ("/v1/train", "application/json", 413),
    "no JSON": ("/v1/train", "text/plain", 415),
    "to a path that takes none": ("/healthz", "application/json", 405),
    "to no path": ("/v1/nothing", "application/json", 404),
}


@pytest.mark.parametrize("size", [2_000_000, 20_000_000, 60_000_000])
@pytest.mark.parametrize(("path", "kind", "code"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("chunks", [False, True], ids=["its length said", "in chunks"])
def test_who_sends_all_of_a_body_that_is_refused_hears_why(server, size, path, kind, code, chunks):
    body = b" " * size
    parts = (body[at : at + 500_000] for at in range(0, len(body), 500_000))
    with closing(http.client.HTTPConnection("127.0.0.1", server, timeout=60)) as asked:
        asked.request("POST", path, parts if chunks else body, {"Content-Type": kind}, encode_chunked=chunks)
        answer = asked.getresponse()
        assert answer.status == code and json.load(answer)["error"]["message"]
    assert health(server) == 200


def test_a_page_of_another_site_hears_that_it_may_not_ask_however_much_it_sends(server):
    with closing(http.client.HTTPConnection("127.0.0.1", server, timeout=60)) as asked:
        asked.request(
            "POST", "/v1/train", b" " * 20_000_000, {"Content-Type": "application/json", "Origin": "http://evil.com"}
        )
        assert asked.getresponse().status == 403


def test_who_goes_on_sending_what_is_refused_is_left_in_the_end():
    with live(Settings(port=0, hub=False, limits=Limits(body_seconds=0.5))) as port, line(port) as held:
        held.sendall(POST % 90_000_000_000)
        assert held.recv(10_000).startswith(b"HTTP/1.1 413")
        with pytest.raises(ConnectionError):
            while True:
                held.sendall(b" " * 100_000)


@pytest.fixture(scope="module")
def server():
    with live(Settings(port=0, hub=False)) as port:
        yield port
