"""`tonnage web`: what its options say, and what is said where it cannot start."""

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tonnage.cli import face, main
from tonnage.cli.web import settings
from tonnage.web.process import run


def said(*words: str):
    _, parser = face("web", words)
    return settings(parser.parse_args(list(words)))


def test_by_default_it_answers_this_machine_alone():
    made = said()
    assert (made.host, made.port, made.workers) == ("127.0.0.1", 8000, 1)
    assert made.reach.files is None and made.reach.hubs and made.store is None


def test_options_are_the_settings(tmp_path):
    made = said(
        "--host",
        "0.0.0.0",
        "--port",
        "9000",
        "--workers",
        "2",
        "--offline",
        "--models",
        str(tmp_path),
        "--names",
        "a.org, b.org",
        "--store",
        "sqlite:///x",
        "--kept",
        "0",
    )
    assert (made.host, made.port, made.workers, made.names, made.store) == (
        "0.0.0.0",
        9000,
        2,
        ("a.org", "b.org"),
        "sqlite:///x",
    )
    assert made.reach == (tmp_path, False, False)
    assert made.limits.kept_bytes == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "0"], "--port"),
        (["--port", "70000"], "from 1 to 65,535"),
        (["--workers", "0"], "--workers"),
        (["--workers", "1000"], "from 1 to 256"),
        (["--offline", "--hub"], "Got both"),
        (["--models", "/no/such/folder"], "must be a folder"),
        (["--host", "no.such.host.invalid"], "no address of this machine"),
        (["--host", "192.0.2.1"], "cannot answer at http://192.0.2.1:8000/"),
        (["--kept", "much"], "--kept"),
        (["--prot", "80"], "--port"),
    ],
)
def test_what_cannot_be_is_said(capsys, words, message):
    assert main(["web", *words]) == 64
    assert message in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["web", "--port", str(taken.getsockname()[1])]) == 64
    error = capsys.readouterr().err
    assert "Give another --port" in error and "Address already in use" in error


def test_what_is_not_installed_is_said(capsys, monkeypatch):
    monkeypatch.setattr(run, "find_spec", lambda name: None if name == "litestar" else name)
    assert main(["web"]) == 64
    assert "pip install 'tonnage[web]'" in capsys.readouterr().err


LONG = {
    "model": "llama-3.1-405b",
    "tokens": "15T",
    "sequence_length": "8k",
    "on": ",".join(f"{nodes}x8x{name}" for nodes in (16, 32, 64) for name in ("h100", "a100", "h200")),
    "vary": {
        "precision": ["bf16-mixed", "fp8-te"],
        "recompute": ["none", "full", "selective"],
        "optimizer": ["adamw", "adamw-8bit"],
    },
}


def started_by(pid: int) -> set[int]:
    """All processes below this one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            parents[int(name.split()[0])] = int(rest.split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_ended_waits_for_nobody_and_leaves_no_process(workers, end):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tonnage", "web", "--port", str(port), "--offline", "--workers", str(workers)]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        )
        stack.callback(lambda: server.poll() is None and os.killpg(server.pid, signal.SIGKILL))
        server.stderr.readline()

        def sent(method, path, body=None):
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            stack.callback(line.close)
            line.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            return line

        idle = sent("GET", "/healthz")
        assert idle.getresponse().read()
        job = json.load(sent("POST", "/v1/jobs", {"verb": "plan", "question": LONG}).getresponse())["id"]
        followed = sent("GET", f"/v1/jobs/{job}/events").getresponse()
        while not followed.readline().startswith(b"event: progress"):
            pass
        search = sent("POST", "/v1/plan", {**LONG, "train": True})
        for _ in range(1200):
            below = started_by(server.pid)
            if len(below) >= 3 * workers:  # a job, what starts processes, and one that answers
                break
            time.sleep(0.05)
        assert not select.select([search.sock], [], [], 0)[0]
        os.kill(server.pid, end)
        said = server.communicate(timeout=60)[1]
        assert server.returncode in (0, 130, 128 + signal.SIGTERM) and said in ("", "interrupted\n")
        for _ in range(600):
            if not any(map(runs, below)):
                break
            time.sleep(0.05)
        assert not [pid for pid in below if runs(pid)]
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            search.getresponse()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_starts_a_server_and_an_interrupt_ends_it(workers):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tonnage", "web", "--port", str(port), "--offline", "--workers", str(workers)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ, start_new_session=True) as server:
        assert server.stderr is not None
        greeting = server.stderr.readline()  # the port takes connections when it is said
        assert greeting == f"tonnage answers at http://127.0.0.1:{port}/ and asks no network; Ctrl-C ends it.\n"
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/explain",
            json.dumps({"name": "k"}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert json.load(answer)["kind"] == "symbol"
        server.send_signal(signal.SIGINT)
        server.wait(60)
        assert server.returncode in (0, 130)
