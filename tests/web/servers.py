"""Real servers on loopback, for tests: each process is one worker; those of one folder are workers of one server."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tonnage.web.app import ENVIRONMENT
from tonnage.web.settings import Settings

START = (
    "import sys, uvicorn; uvicorn.run('tonnage.web.app:from_environment', factory=True, fd=int(sys.argv[1]), "
    "log_level='error')"
)


class Reached:
    """A server at a port. `ask` gives a status and a document."""

    def __init__(self, port: int):
        self.port = port

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            told = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(
                method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"} | told
            )
            answer = connection.getresponse()
            text = answer.read()
            self.headers = answer.headers
            return answer.status, json.loads(text) if text else {}

    def text(self, path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read().decode()

    def events(self, job: str, after: int | None = None) -> Iterator[tuple[int, str, dict]]:
        """Number, name and data of each event, as it comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(
                "GET", f"/v1/jobs/{job}/events", headers={} if after is None else {"Last-Event-ID": str(after)}
            )
            answer = connection.getresponse()
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            event: dict[str, str] = {}
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name in ("id", "event", "data"):
                    event[name] = value
                elif not line.strip() and "data" in event:
                    yield int(event["id"]), event["event"], json.loads(event["data"])
                    event = {}


class Worker(Reached):
    """One process on a port of its own."""

    def __init__(self, settings: Settings):
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()  # who connects before the server is ready waits: no test has to
            super().__init__(listening.getsockname()[1])
            os.set_inheritable(listening.fileno(), True)
            environment = os.environ | {ENVIRONMENT: msgspec.json.encode(settings).decode()}
            command = [sys.executable, "-c", START, str(listening.fileno())]
            self.process = subprocess.Popen(command, env=environment, pass_fds=[listening.fileno()])


@contextmanager
def workers(number: int, folder: Path, **settings: object) -> Iterator[list[Worker]]:
    """So many workers of one server."""
    made = [Worker(Settings(folder=str(folder), **settings)) for _ in range(number)]
    try:
        yield made
    finally:
        for worker in made:
            worker.process.terminate()
        for worker in made:
            worker.process.wait(30)
