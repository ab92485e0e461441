"""Checkouts of tonnage that are measured in turn, and processes with the CPU time that they take."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("probe.py")
ANSWERED = (0, 2, 3, 4)  # exit statuses of answers
# Without what a tester or a workplace sets: bytecode is kept, terms are not checked, nothing is on the path.
DROPPED = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "TONNAGE_CHECK_TERMS")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in DROPPED} | {
    "TONNAGE_LANG": "en",
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
}


class NotMeasured(Exception):
    """Why a line has no figure."""


class Spent(NamedTuple):
    """What a process took, in seconds, and what it printed."""

    cpu: float
    wall: float
    printed: str


def run(command: Sequence[str], given: str = "", folder: Path = ROOT) -> Spent:
    """A process until its end; NotMeasured where it fails. CPU time is that of its children too."""
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
        tempfile.TemporaryFile("w+") as words,
    ):
        words.write(given)
        words.seek(0)
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=words, stdout=out, stderr=errors, env=ENVIRONMENT, cwd=folder)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode not in ANSWERED:
            lines = errors.read().strip().splitlines() or [f"status {process.returncode}"]
            raise NotMeasured(lines[-1][:200])
        return Spent(used.ru_utime + used.ru_stime, wall, out.read())


class Checkout:
    """A tree of tonnage with the Python that imports it."""

    def __init__(self, root: Path):
        self.root = root.resolve()
        own = self.root / ".venv" / "bin" / "python"
        self.python = sys.executable if self.root == ROOT else str(own)
        if not Path(self.python).exists():
            sys.exit(f"{self.root} has no .venv: run `make .venv/test.done` there.")
        source = Path(self.features["source"])
        if not source.is_relative_to(self.root):
            sys.exit(f"{self.python} imports {source}, which is not in {self.root}: its .venv is that of another tree.")

    @cached_property
    def features(self) -> dict[str, Any]:
        """What it can do, as probe.py says."""
        found: dict[str, Any] = self.probe("features")
        return found

    @property
    def commit(self) -> str:
        """Its commit, with a plus where files of its source differ from it."""
        return self._git("rev-parse", "--short", "HEAD") + ("+" if self._git("status", "--porcelain", "src") else "")

    def _git(self, *words: str) -> str:
        said = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=False)
        return said.stdout.strip()

    def probe(self, *words: str) -> Any:
        """What probe.py measures in a process of this checkout."""
        spent = run((self.python, "-P", "-W", "ignore", str(PROBE), *words), folder=self.root)
        return json.loads(spent.printed.splitlines()[-1])

    def command(self, *words: str) -> Spent:
        """A command of tonnage."""
        return run((self.python, "-m", "tonnage", *words), folder=self.root)


@contextmanager
def without(names: Sequence[str]) -> Iterator[None]:
    """This process without these variables of its environment: what it starts inherits it."""
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)
