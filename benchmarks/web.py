"""What the web server bears: the real one, `tonnage web --workers 2`, on loopback, asked by wrk (Debian). Writes
results_web.json.

    make bench-web
    python benchmarks/web.py --soak 600

Each question is POST /v1/train. "the same": one question again and again, as a page that many look at; "distinct": no
question comes twice in a run, so that each is estimated. Latency is measured at a rate that is held, 80 % of the
throughput: wrk alone measures how long requests wait for each other. So connections are few enough that their rate, by
Little's law, is that: a connection sends the next request when it has its answer, after a pause. Figures of a machine
that others use are noise.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
WRITTEN = HERE / "results_web.json"
WORKERS = 2
LOAD = 0.8  # of the throughput


def free_port() -> int:
    """A port at which nothing answers: at a fixed one a server of somebody else might, and be measured."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


PORT = free_port()
SAME, DISTINCT = "the same question", "distinct questions"
# Sums of all threads, at the end; `delay` holds a rate: milliseconds between an answer and the next question of a
# connection.
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local models = {"llama-3.1-8b", "qwen3-8b", "mistral-7b", "llama-3.1-70b", "qwen3-32b", "mixtral-8x7b"}
local threads, started = {}, %(start)d
function setup(thread)
  thread:set("id", #threads)
  table.insert(threads, thread)
end
function init(args)
  asked = started + id * 10000000
  wrong = 0
end
function request()
  asked = asked + 1
  local n = %(distinct)s and asked or 0
  local lengths = math.floor(n / #models)
  local body = string.format('{"model":"%%s","on":"8xH100-SXM-80GB","sequence_length":%%d,"reserve":%%d%(more)s}',
                             models[n %% #models + 1], 512 + 8 * (lengths %% 256), math.floor(lengths / 256))
  return wrk.format(nil, "%(path)s", nil, body)
end
function delay()
  return %(pause)s
end
function response(status)
  if status ~= 200 then wrong = wrong + 1 end
end
function done(summary, latency)
  local wrong = 0
  for _, thread in ipairs(threads) do wrong = wrong + thread:get("wrong") end
  local e = summary.errors
  io.write(string.format('\\nRESULT {"requests":%%d,"microseconds":%%d,"wrong":%%d,"errors":%%d,"p50":%%d,"p95":%%d,"p99":%%d,"mean":%%f}\\n',
    summary.requests, summary.duration, wrong, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(95), latency:percentile(99), latency.mean))
end
"""


class Run:
    """What one run of wrk measured. Times in seconds."""

    def __init__(self, said: dict[str, float]):
        self.rate = said["requests"] / (said["microseconds"] / 1e6)
        self.p50, self.p95, self.p99, self.mean = (said[name] / 1e6 for name in ("p50", "p95", "p99", "mean"))
        self.failed = int(said["wrong"] + said["errors"])


class Server:
    """The server, and what its processes take."""

    def __init__(self, process: subprocess.Popen[bytes]):
        self.process, self.asked = process, 0

    def load(
        self,
        *,
        distinct: bool,
        connections: int,
        seconds: float,
        pause: float = 0.0,
        path: str = "/v1/train",
        more: str = "",
    ) -> Run:
        """So many connections, each waiting `pause` seconds between an answer and its next question. `more`: of each
        question, as JSON.
        """
        script = SCRIPT % {
            "path": path,
            "more": more,
            "start": self.asked,
            "distinct": "true" if distinct else "false",
            "pause": f"{pause * 1000:.3f}" if pause else "0",
        }
        if not pause:
            script = re.sub(
                r"function delay\(\).*?end\n", "", script, flags=re.S
            )  # without it wrk sends as fast as it can
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
            file.write(script)
            file.flush()
            command = [
                "wrk",
                "-t",
                "1",
                "-c",
                str(connections),
                "-d",
                f"{max(round(seconds), 1)}s",
                "--timeout",
                "30s",
                "-s",
                file.name,
                f"http://127.0.0.1:{PORT}",
            ]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(re.search(r"^RESULT (.*)$", done.stdout, re.M)[1])  # type: ignore[index]
        self.asked += int(found["requests"]) + 1000 if distinct else 0
        return Run(found)

    def cpu_seconds(self) -> float:
        """What all its processes have spent."""
        return sum(_cpu_seconds(pid) for pid in _family(self.process.pid))

    def memory(self) -> int:
        """Bytes that all its processes have, what they share counted once."""
        return sum(_own_bytes(pid) for pid in _family(self.process.pid))


@contextmanager
def serving(*options: str, python: str = sys.executable) -> Iterator[Server]:
    """`tonnage web` of this Python until the end."""
    command = [
        python,
        "-m",
        "tonnage",
        "web",
        "--workers",
        str(WORKERS),
        "--port",
        str(PORT),
        "--offline",
        "--store",
        "none",
        *options,
    ]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        _await_answer(process)
        yield Server(process)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _await_answer(process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit("the server ended before it answered")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not answer within a minute")


def _family(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _own_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it has ended
        return 0
    return 1024 * int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])  # type: ignore[index]


def measured(
    server: Server, *, distinct: bool, seconds: float, small: bool = False, path: str = "/v1/train", more: str = ""
) -> list[dict[str, object]]:
    """Throughput as fast as it goes, then latency at 80 % of it."""
    what = DISTINCT if distinct else SAME
    # first a short run: modules are read, parsers made
    server.load(distinct=distinct, connections=8, seconds=min(seconds, 5), path=path, more=more)
    full = max(
        (
            server.load(distinct=distinct, connections=number, seconds=seconds, path=path, more=more)
            for number in ((4,) if small else (4, 16))
        ),
        key=lambda run: run.rate,
    )
    if not full.rate:
        raise SystemExit(f"no question was answered within {seconds:g} s: the machine is too busy to measure anything")
    goal = LOAD * full.rate
    connections = max(1, min(16, round(goal)))  # each asks once a second at least
    pause = connections / goal
    for _ in range(1 if small else 3):  # rate = connections / (pause + latency): the pause is what the latency leaves
        part = server.load(
            distinct=distinct, connections=connections, seconds=seconds, pause=pause, path=path, more=more
        )
        if abs(part.rate / goal - 1) < 0.05:
            break
        pause = max(connections / goal - part.mean, 0.0005) if part.rate else pause / 2
    rows = [
        (f"POST {path}, {what}: throughput", full.rate, "requests/s"),
        (f"POST {path}, {what}: p99 at full load", full.p99, "s"),
        (f"POST {path}, {what}: rate that was held", part.rate, "requests/s"),
        (f"POST {path}, {what}: p50 at {LOAD:.0%} load", part.p50, "s"),
        (f"POST {path}, {what}: p95 at {LOAD:.0%} load", part.p95, "s"),
        (f"POST {path}, {what}: p99 at {LOAD:.0%} load", part.p99, "s"),
        (f"POST {path}, {what}: failed requests", full.failed + part.failed, "requests"),
    ]
    return [{"name": name, "value": value, "unit": unit} for name, value, unit in rows]


def soaked(server: Server, seconds: float, part: float = 20.0) -> list[dict[str, object]]:
    """Distinct questions for so long: errors, and how memory grows from the second fifth, when all is warm, to the
    last.
    """
    ends, sizes, failed, asked = time.monotonic() + seconds, [], 0, 0.0
    while (left := ends - time.monotonic()) > 0:
        took = min(part, max(left, 1))
        run = server.load(distinct=True, connections=8, seconds=took)
        failed, asked = failed + run.failed, asked + run.rate * took
        sizes.append(server.memory())
        print(
            f"{left:6.0f} s left, {run.rate:7.1f} requests/s, {sizes[-1] / 2**20:.1f} MiB, {failed} failed",
            file=sys.stderr,
            flush=True,
        )
    fifth = max(len(sizes) // 5, 1)
    warm, last = sorted(sizes[fifth : 2 * fifth] or sizes[:1]), sorted(sizes[-fifth:])
    growth = last[len(last) // 2] - warm[len(warm) // 2]
    rows = [
        ("soak: length", seconds, "s"),
        ("soak: requests", round(asked), "requests"),
        ("soak: failed requests", failed, "requests"),
        ("soak: memory of all processes at the end", sizes[-1], "bytes"),
        ("soak: growth of memory", growth, "bytes"),
    ]
    return [{"name": name, "value": value, "unit": unit} for name, value, unit in rows]


def saved_at_once(seconds: float, clients: int = 200, each: float = 2.0) -> list[dict[str, object]]:
    """Plans that so many clients save at the same time, each on a line of its own, one every `each` seconds."""
    times: list[float] = []
    refused: list[int] = []

    def save(number: int, begins: float) -> None:
        line = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        for turn in range(max(round(seconds / each), 1)):
            time.sleep(max(begins + each * (turn + number / clients) - time.monotonic(), 0))
            question = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "sequence_length": 4096 + turn}
            body = json.dumps({"name": f"plan {number} {turn}", "verb": "train", "question": question})
            start = time.monotonic()
            line.request("POST", "/v1/saved", body, {"Content-Type": "application/json"})
            response = line.getresponse()
            response.read()
            times.append(time.monotonic() - start)
            if response.status != 201:
                refused.append(response.status)
        line.close()

    with tempfile.TemporaryDirectory() as folder, serving("--store", f"sqlite:///{folder}/plans.db"):
        begins = time.monotonic() + 1
        threads = [threading.Thread(target=save, args=(number, begins)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return _saving_rows(f"POST /v1/saved by {clients} clients, each every {each:g} s", times, len(refused))


def saved_under_load(
    seconds: float, clients: int = 200, begin: float = 2, python: str = sys.executable
) -> list[dict[str, object]]:
    """Plans that one client saves while so many others ask distinct questions as fast as they can. The first is saved
    `begin` seconds after they began, when all of them ask.
    """
    store = tempfile.TemporaryDirectory()
    with store as folder, serving("--store", f"sqlite:///{folder}/plans.db", python=python) as server:
        asking = threading.Thread(
            target=server.load, kwargs={"distinct": True, "connections": clients, "seconds": seconds + 2 * begin}
        )
        asking.start()
        time.sleep(begin)
        ends, times, refused = time.monotonic() + seconds, [], 0
        while time.monotonic() < ends:
            question = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "sequence_length": 4096 + len(times)}
            body = json.dumps({"name": f"plan {len(times)}", "verb": "train", "question": question}).encode()
            asked = urllib.request.Request(
                f"http://127.0.0.1:{PORT}/v1/saved", body, {"Content-Type": "application/json"}
            )
            start = time.monotonic()
            try:
                urllib.request.urlopen(asked, timeout=60).close()
            except urllib.error.HTTPError as error:
                refused += 1
                error.close()
            times.append(time.monotonic() - start)
        asking.join()
    return _saving_rows(f"POST /v1/saved under {clients} clients", times, refused)


def _saving_rows(what: str, times: list[float], refused: int) -> list[dict[str, object]]:
    times = sorted(times)
    rows = [
        (f"{what}: saves", len(times), "saves"),
        (f"{what}: refused", refused, "saves"),
        (f"{what}: p50", times[len(times) // 2], "s"),
        (f"{what}: p99", times[int(len(times) * 0.99)], "s"),
    ]
    return [{"name": name, "value": value, "unit": unit} for name, value, unit in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument(
        "--soak",
        type=float,
        nargs="?",
        const=600,
        default=0,
        help="also ask for so many seconds on end, and watch memory and errors (600)",
    )
    parser.add_argument(
        "--small", action="store_true", help="three seconds of each, fewer of them: its values mean nothing"
    )
    parser.add_argument("--out", type=Path, default=WRITTEN)
    said = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: scripts/debian_packages.sh does it")
    if not 0 <= said.soak <= 3600 or not 1 <= said.seconds <= 600:
        raise SystemExit("--soak is from 0 to 3600 seconds, --seconds from 1 to 600")
    rows: list[dict[str, object]] = [{"name": "processor cores", "value": os.cpu_count(), "unit": "cores"}]
    with serving() as server:
        for distinct in (False,) if said.small else (False, True):  # saving under load asks distinct ones too
            rows += measured(server, distinct=distinct, seconds=3 if said.small else said.seconds, small=said.small)
            for row in rows[-7:]:
                print(row, flush=True)
        rows.append({"name": "memory of all processes after it", "value": server.memory(), "unit": "bytes"})
        if said.soak:
            rows += soaked(server, said.soak)
    if said.small:
        rows += saved_at_once(1, clients=8, each=1.0)
        rows += saved_under_load(1, clients=8, begin=0.5)
    else:
        rows += saved_at_once(said.seconds)
        rows += saved_under_load(said.seconds)
    said.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
