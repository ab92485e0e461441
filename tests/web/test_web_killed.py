"""`tonnage web` killed with SIGKILL: nothing of it stays, and a new server knows of its jobs."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from select import select
from time import monotonic

import pytest

from tonnage.web.process.parent import end_with_parent
from web.servers import Reached
from web.test_web_command import LONG, started_by

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are looked up in /proc and waited for by pidfd"
)
ENDED_WITHIN = 2  # seconds after the kill


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def command(port: int, workers: int, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tonnage",
        "web",
        "--port",
        str(port),
        "--offline",
        "--store",
        "none",
        "--workers",
        str(workers),
        *more,
    ]


def start(stack: ExitStack, port: int, workers: int, folder: Path) -> subprocess.Popen[str]:
    """A server whose shared folder is in `folder`; it takes connections when this returns."""
    process = subprocess.Popen(
        command(port, workers),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    stack.enter_context(process)
    stack.callback(lambda: process.poll() is None and process.kill())
    assert "tonnage answers" in process.stderr.readline()
    return process


def ended_within(handles: dict[int, int], seconds: float) -> set[int]:
    """Processes of these pidfds that still run so many seconds from now. The kernel makes a pidfd readable at the
    end of its process.
    """
    deadline, left = monotonic() + seconds, dict(handles)
    while left and (remaining := deadline - monotonic()) > 0:
        ready, _, _ = select(list(left.values()), [], [], remaining)
        left = {pid: handle for pid, handle in left.items() if handle not in ready}
    return set(left)


def opened(stack: ExitStack, pids: set[int]) -> dict[int, int]:
    found = {}
    for pid in pids:
        with suppress(ProcessLookupError):
            found[pid] = os.pidfd_open(pid)
            stack.callback(os.close, found[pid])
    return found


def holders_of(port: int) -> set[int]:
    """Processes that hold a socket which listens at the port."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if str(link.readlink()) in sockets:
                found.add(int(link.parts[2]))
    return found


def running_job(stack: ExitStack, server: Reached) -> str:
    """A job that has told of progress."""
    job = server.ask("POST", "/v1/jobs", {"verb": "plan", "question": LONG})[1]["id"]
    line = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)))
    line.request("GET", f"/v1/jobs/{job}/events")
    followed = line.getresponse()
    while not followed.readline().startswith(b"event: progress"):
        pass
    return job


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_is_left_of_a_server_that_is_killed_and_its_jobs_are_lost_after_a_restart(workers, tmp_path):
    port = free_port()
    with ExitStack() as stack:
        process, server = start(stack, port, workers, tmp_path), Reached(port)
        job = running_job(stack, server)
        search = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)))
        search.request("POST", "/v1/plan", json.dumps({**LONG, "train": True}), {"Content-Type": "application/json"})
        assert server.ask("POST", "/v1/explain", {"name": "k"})[0] == 200  # a process that answers is there
        below = opened(stack, started_by(process.pid))
        assert len(below) >= 2 + workers
        os.kill(process.pid, signal.SIGKILL)
        assert ended_within(below, ENDED_WITHIN) == set()
        process.wait(10)
        with socket.socket() as again:  # without SO_REUSEADDR nobody may listen, with it no other may
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))
            again.listen()
        second = start(stack, port, workers, tmp_path)
        status, document = server.ask("GET", f"/v1/jobs/{job}")
        assert (status, document["state"], document["error"]["kind"]) == (200, "failed", "Lost")
        *_, (_, name, error) = server.events(job)
        assert (name, error["kind"]) == ("error", "Lost")
        second.send_signal(signal.SIGTERM)
        second.wait(60)
    assert list(tmp_path.glob("tonnage-web-*")) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_the_port_is_held_by_the_server_and_its_workers_alone(workers, tmp_path):
    """A job or a process that answers would keep it from the next server."""
    port = free_port()
    with ExitStack() as stack:
        process = start(stack, port, workers, tmp_path)
        running_job(stack, Reached(port))
        assert Reached(port).ask("POST", "/v1/explain", {"name": "k"})[0] == 200
        holders = holders_of(port)
        assert process.pid in holders and len(holders) == (1 if workers == 1 else 1 + workers)
        assert len(started_by(process.pid)) > workers
        process.send_signal(signal.SIGTERM)
        process.wait(60)


WATCHED = """
import multiprocessing, os, sys, threading
def child(line):
    {change}
    from tonnage.web.process.parent import end_with_parent
    end_with_parent()
    line.send(os.getpid())
    threading.Event().wait()
if __name__ == "__main__":
    mine, theirs = multiprocessing.Pipe()
    multiprocessing.get_context({method!r}).Process(target=child, args=(theirs,)).start()
    print(mine.recv(), flush=True)
    threading.Event().wait()
"""
ELSEWHERE = "sys.platform = 'elsewhere'"  # no signal of Linux: the process watches its parent


@pytest.mark.parametrize("change", ["pass", ELSEWHERE], ids=["by the system", "by watching"])
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_ends_with_the_one_that_started_it(method, change, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(WATCHED.format(method=method, change=change))
    with ExitStack() as stack:
        parent = stack.enter_context(subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True))
        child = int(parent.stdout.readline())
        handles = opened(stack, {child})
        os.kill(parent.pid, signal.SIGKILL)
        assert ended_within(handles, 10) == set()


def test_a_process_that_nobody_started_by_multiprocessing_watches_nobody():
    before = {each.name for each in threading.enumerate()}
    end_with_parent()
    assert {each.name for each in threading.enumerate()} == before
