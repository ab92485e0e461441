"""One server and one browser for all tests of the page. Where Debian's Chromium or Playwright is missing the tests
are skipped, and say so.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from page_visits import PATIENCE, Visit, asked  # noqa: F401 - asked: tests have it from here too

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
# The same engine without the windows, menus and services around it needs a third less time.
SHELL, WHOLE = "/usr/bin/chromium-headless-shell", "/usr/bin/chromium"
CHROMIUM = os.environ.get("TONNAGE_CHROMIUM", SHELL if Path(SHELL).exists() else WHOLE)
READY = 60  # seconds that a server may take to start on a busy machine
SRC = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address. It asks no network, and saves plans in a file of the tests."""
    with served(f"sqlite:///{tmp_path_factory.mktemp('store')}/plans.db") as address:
        yield address


@contextmanager
def served(store: str) -> Iterator[str]:
    """The address of a server that saves plans there."""
    pytest.importorskip("litestar", reason="the page's server needs the extra web")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tonnage", "web", "--port", str(port), "--offline", "--store", store]
    started = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = f"http://127.0.0.1:{port}/"
    try:
        _wait(address, started)
        yield address
    finally:
        started.terminate()
        started.communicate(timeout=20)


def _wait(address: str, started: subprocess.Popen[str]) -> None:
    end = time.monotonic() + READY
    while True:
        try:
            with urllib.request.urlopen(f"{address}healthz", timeout=5):
                return
        except OSError:
            if started.poll() is not None:
                pytest.fail(f"tonnage web ended: {started.stderr and started.stderr.read()}")
            if time.monotonic() > end:
                pytest.fail(f"tonnage web does not answer after {READY} s")
            time.sleep(0.1)


@pytest.fixture(scope="module")  # Playwright's loop runs as long: other modules have loops of their own
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
    if not shutil.which(CHROMIUM):
        pytest.skip(f"the page is tested in Debian's Chromium, and {CHROMIUM} is not there")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def visiting(browser: Any, server: str) -> Iterator[Any]:
    """Opens windows; afterwards none of them may have met an error of the page's own."""
    visits: list[Visit] = []

    def visit(**context: Any) -> Visit:
        visits.append(Visit(browser, server, **context))
        return visits[-1]

    yield visit
    for each in visits:
        each.context.close()
    assert [said for each in visits for said in each.wrong] == []


@pytest.fixture(scope="module")
def windows(browser: Any, server: str) -> Iterator[dict[str, Visit]]:
    """Windows that stay open for the tests of a module, by their size and look."""
    kept: dict[str, Visit] = {}
    yield kept
    for each in kept.values():
        each.context.close()


@pytest.fixture
def staying(windows: dict[str, Visit], browser: Any, server: str) -> Iterator[Any]:
    """A window with this size and look, which stays open: tests that only look at an answer share its load of the page
    (`Visit.go_on`). No test may meet an error of the page's own.
    """

    def visit(**context: Any) -> Visit:
        key = repr(sorted(context.items()))
        if key not in windows:
            windows[key] = Visit(browser, server, **context)
        return windows[key]

    yield visit
    assert [said for each in windows.values() for said in each.wrong] == []
