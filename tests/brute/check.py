"""Run one command line in this process, and say what is wrong with its answer."""

import contextlib
import io
import json
import re
import shlex
import signal
import traceback
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from brute.documents import document_faults
from brute.python_api import api_faults
from brute.texts import text_faults
from tonnage.cli import STATUSES, main

Words = tuple[str, ...]
API = "api"  # the first word of a case that asks through the Python API
LIMIT = (
    120  # seconds of the processor for one command line: more is a search without bounds, however busy the machine is
)


class Outcome:
    """What one command line did: its status, its faults (kind, words), and its document where it prints one."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.status: int | None = None
        self.faults: list[tuple[str, str]] = []
        self.document: Any = None
        self.error = ""

    @property
    def reproducer(self) -> str:
        if self.words[0] == API:
            code = f"from brute.check import run_case; print(run_case({self.words!r}).faults)"
            return f"TONNAGE_CHECK_TERMS=1 PYTHONPATH=tests python -c {shlex.quote(code)}"
        return "TONNAGE_CHECK_TERMS=1 tonnage " + shlex.join(self.words)


def run_case(words: Words) -> Outcome:
    """Every command line ends with a documented status and a clean answer; whatever else it does is a fault."""
    outcome = Outcome(words)
    out, err = io.StringIO(), io.StringIO()
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        try:
            with limited(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                if words[0] == API:
                    outcome.faults += api_faults(words[1:])
                    return outcome
                outcome.status = main(list(words))
        except AssertionError as error:
            outcome.faults.append(_raised("violation", error))
            return outcome
        except (Exception, SystemExit, TookTooLong) as error:  # noqa: BLE001  (whatever it is, it is no error of ours)
            outcome.faults.append(_raised("exception", error))
            return outcome
        files = {path.name: path.read_text(encoding="utf-8") for path in Path().iterdir() if path.is_file()}
    outcome.error = err.getvalue()
    outcome.faults += _faults(outcome, out.getvalue(), files)
    return outcome


class TookTooLong(BaseException):
    """A command line ran longer than LIMIT."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise TookTooLong, which nothing catches but run_case, when LIMIT has passed."""

    def stop(_number: int, _frame: Any) -> None:
        raise TookTooLong(f"longer than {LIMIT} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _faults(outcome: Outcome, out: str, files: dict[str, str]) -> Iterator[tuple[str, str]]:
    if outcome.status not in STATUSES:
        yield "exception", f"status {outcome.status}"
    if "Traceback" in out + outcome.error:
        yield "exception", "a traceback is printed"
    if outcome.status in (0, 2, 3) and not out and not files:
        yield "exception", "no answer is printed"
    if outcome.status not in (0, 2, 3) and not outcome.error and outcome.status != 4:
        yield "exception", "an error without a message"
    if "--json" in outcome.words:
        try:
            outcome.document = json.loads(out, parse_constant=_refuse)
        except ValueError as error:
            yield "violation", f"no document: {error}"
        else:
            yield from (("violation", fault) for fault in document_faults(outcome.document))
    elif outcome.status in (0, 2, 3):
        yield from text_faults(out)
    for name, text in files.items():
        yield from (
            (kind, f"{name}: {fault}")
            for kind, fault in text_faults(re.sub(r"<(style|script|svg).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL))
        )


def _refuse(text: str) -> float:
    raise ValueError(f"{text} in a document")


def _raised(kind: str, error: BaseException) -> tuple[str, str]:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/tonnage/" in frame.filename and "breakdown" not in frame.filename]
    where = f"{ours[-1].filename.partition('/src/')[2]}:{ours[-1].lineno}" if ours else "?"
    return kind, f"{type(error).__name__} at {where}: {str(error)[:300]}"
