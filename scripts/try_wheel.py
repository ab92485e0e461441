"""Try a wheel as a stranger would: install it into an empty environment, ask the questions of README.md and of the demo
in an empty folder, and open the page of `tonnage web` from it. Nothing of the checkout is in reach of that environment.

make dist
python scripts/try_wheel.py dist/tonnage-0.1.0-py3-none-any.whl
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
ANSWERED = (0, 2, 3)  # the statuses of verdicts
SERVED_WITHIN = 60  # seconds until the server answers
QUESTION = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "sequence_length": 8192, "recompute": "full"}


class Failed(SystemExit):
    """The wheel does not do what README.md says."""


def install(wheel: Path, folder: Path) -> Path:
    """An environment of its own with the wheel and what the core needs; its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    _pip(python, str(wheel))
    return python


def install_web(wheel: Path, python: Path) -> None:
    """Add what the server needs."""
    _pip(python, f"{wheel}[web]")


def _pip(python: Path, requirement: str) -> None:
    _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement], python.parent)


def commands() -> list[str]:
    """The commands of README.md's first blocks."""
    return re.findall(r"^\$ (tonnage [^#\n]+)", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M)


def ask(python: Path, folder: Path) -> list[str]:
    """The first line of each answer to README's commands, and the last of the demo, run in a folder."""
    said = _run([python, "-c", "import tonnage; print(tonnage.__version__, tonnage.__file__)"], folder).split()
    version, there = said[0], Path(said[1])
    answers = [f"tonnage {version} of {there.parent}"]
    for command in commands():
        answers.append(_run([python, "-m", *shlex.split(command)], folder, ANSWERED).partition("\n")[0])
    shutil.copy(ROOT / "scripts" / "demo.py", folder)
    answers.append(_run([python, folder / "demo.py"], folder).rstrip("\n").rpartition("\n")[2])
    return answers


def is_outside(python: Path, folder: Path) -> bool:
    """Whether that Python has the package from its own environment, not from the checkout."""
    there = Path(_run([python, "-c", "import tonnage; print(tonnage.__file__)"], folder).strip())
    return there.is_relative_to(python.parents[1]) and not there.is_relative_to(ROOT / "src")


def _run(command: list[str | Path], folder: Path, statuses: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode not in statuses:
        raise Failed(f"{shlex.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Without what leads to the checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return kept | {"TONNAGE_LANG": "en", "HF_HUB_OFFLINE": "1"}


def look_at_the_page(python: Path, folder: Path) -> int:
    """Serve the page, fetch it with every file that it names, and ask a question: the number of files."""
    with _serving(python, folder) as address:
        page = _fetch(f"{address}/").decode()
        files = {name for name in re.findall(r'(?:src|href)="([^"#:]+)"', page) if not name.startswith("data")}
        for name in files:
            if not _fetch(f"{address}/{name.removeprefix('/')}"):
                raise Failed(f"{name} of the page is empty")
        answer = json.loads(_fetch(f"{address}/v1/train", json.dumps(QUESTION).encode()))
        if answer["verdict"]["fits"] is not True:
            raise Failed(f"the server answers {answer['verdict']}")
    return len(files)


@contextmanager
def _serving(python: Path, folder: Path) -> Iterator[str]:
    """The address of `tonnage web` of that Python, until the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "tonnage", "web", "--port", str(port), "--offline", "--store", "none"]
    with subprocess.Popen(command, cwd=folder, env=_environment()) as process:
        try:
            _await_answer(process, f"http://127.0.0.1:{port}/healthz")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def _await_answer(process: subprocess.Popen[bytes], address: str) -> None:
    end = time.monotonic() + SERVED_WITHIN
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Failed("tonnage web ended before it answered")
        try:
            _fetch(address)
            return
        except urllib.error.URLError:
            time.sleep(0.1)
    raise Failed(f"tonnage web did not answer within {SERVED_WITHIN} s")


def _fetch(address: str, body: bytes | None = None) -> bytes:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"} if body else {})
    with urllib.request.urlopen(request, timeout=30) as response:
        return bytes(response.read())


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    wheel = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "empty"
        folder.mkdir()
        python = install(wheel, Path(temporary) / "environment")
        print("\n".join(ask(python, folder)))
        if not is_outside(python, folder):
            raise Failed("the package is that of the checkout")
        install_web(wheel, python)
        print(f"the page: {look_at_the_page(python, folder)} files, and an answer")


if __name__ == "__main__":
    main()
