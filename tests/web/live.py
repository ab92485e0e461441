"""A real server in a thread of this process, at a port of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tonnage.web.app import create_app
from tonnage.web.process.run import bound, lines
from tonnage.web.settings import Settings


@contextmanager
def live(settings: Settings) -> Iterator[int]:
    """The port, which takes connections from the start; the server ends with the block."""
    listening = bound(settings)
    server = uvicorn.Server(uvicorn.Config(create_app(settings), **lines(settings) | {"log_level": "critical"}))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
