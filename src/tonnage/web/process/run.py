"""Starting the server, with as many open files as its connections need."""

import os
import signal
import socket
import sys
from importlib.util import find_spec
from typing import Any

import msgspec
from msgspec.structs import replace

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import joined
from tonnage.web.settings import Limits, Settings

NEEDED = ("litestar", "uvicorn", "httptools")
BACKLOG = 1024


def check_extra() -> None:
    """InvalidInput with what to install."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise InvalidInput(
            "the page and the API need {missing}, which is not installed: pip install 'tonnage[web]'.",
            missing=joined(" and ", missing),
        )


def serve(settings: Settings, browse: bool = False) -> int:
    """Answer until interrupted."""
    check_extra()
    from tonnage.web.jobs.folder import shared_folder
    from tonnage.web.jobs.processes import end_lost_jobs
    from tonnage.web.store.opened import Opened

    backup = Opened(settings.store, own=settings.loopback).prepare()
    if backup is not None:
        print(f"saved plans were brought to this version of tonnage; as they were before: {backup}", file=sys.stderr)
    listening = bound(settings)  # first: who cannot have the port takes nothing over
    signal.signal(signal.SIGTERM, _end)
    with listening, shared_folder(url(settings)) as folder:
        end_lost_jobs(folder, settings.jobs)
        limits = with_room_for_connections(settings.limits)
        return _serve(replace(settings, folder=str(folder), limits=limits), listening, browse)


def _end(*_: Any) -> None:
    """uvicorn raises the signal that ended it again when it is done: the folder has to go first."""
    raise SystemExit(128 + signal.SIGTERM)


def _serve(settings: Settings, listening: socket.socket, browse: bool) -> int:
    from uvicorn import Config, Server
    from uvicorn.supervisors import Multiprocess

    from tonnage.web.app import ENVIRONMENT

    os.environ[ENVIRONMENT] = msgspec.json.encode(settings).decode()
    config = Config("tonnage.web.process.start:application", factory=True, workers=settings.workers, **lines(settings))
    _greet(settings, browse)
    if settings.workers > 1:
        Multiprocess(config, sockets=[listening]).run()
    else:
        Server(config).run(sockets=[listening])
    return 0


def lines(settings: Settings) -> dict[str, Any]:
    """How uvicorn keeps its lines to clients."""
    from tonnage.web.wire.protocol import protocol

    return {
        "http": protocol(settings.limits),
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "limit_concurrency": settings.limits.connections,
        "timeout_keep_alive": 15,
        "timeout_graceful_shutdown": 3,
        "backlog": BACKLOG,
    }


def bound(settings: Settings) -> socket.socket:
    """The socket that the server listens at; InvalidInput where it cannot."""
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InvalidInput("--host {host!r} is no address of this machine.", host=settings.host) from None
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise InvalidInput(
            "cannot answer at {url}: {strerror}. Give another --port, or end what answers there.",
            url=url(settings),
            strerror=error.strerror,
        ) from None
    return listening


def url(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}/"


def _greet(settings: Settings, browse: bool) -> None:
    hubs = "asks model hubs for models that it does not know" if settings.reach.hubs else "asks no network"
    print(f"tonnage answers at {url(settings)} and {hubs}; Ctrl-C ends it.", file=sys.stderr, flush=True)
    if browse:
        import webbrowser

        webbrowser.open(url(settings))


OTHER_FILES = (
    200  # open files of a worker besides its connections: lines to processes, data bases, modules that are read
)


def with_room_for_connections(limits: Limits) -> Limits:
    """The limits, after as many open files are allowed as the connections need; with fewer connections where the system
    allows fewer files.

    Without room for one more the system refuses connections to everybody alike, and no connection can be given up for a
    new one.
    """
    if sys.platform == "win32":
        return limits
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return limits
    return replace(limits, connections=max(soft - OTHER_FILES, soft // 2))
