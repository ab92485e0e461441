"""From an answer to stdout: one JSON document, or lines for people."""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from tonnage.documents.document import builtins, encode
from tonnage.kernel.message import Message
from tonnage.language import say, worded
from tonnage.verbs.answered import FULL, DocumentedAnswer, document_of

if TYPE_CHECKING:
    from tonnage.render.brief.layout import Runs


class Unwritable(Exception):
    """stdout does not take what is written: the disk is full, or the device is gone."""


def print_json(document: Any, indent: int = 2) -> None:
    """One document, indented, with a newline at its end. `indent`: spaces of a level; -1: all on one line."""
    try:
        encoded = encode(document)
    except UnicodeEncodeError:  # a word of the command line that is no UTF-8: its bytes are shown as ?
        import json

        plain = json.dumps(builtins(document), ensure_ascii=False)
        encoded = plain.encode("utf-8", "replace")
    write(msgspec.json.format(encoded, indent=indent).decode() + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """Plain text; on a terminal the first line stands out, in the colour of its tone (render.tone)."""
    text = list(lines)
    if text and sys.stdout is not None and sys.stdout.isatty():
        text[0] = _emphasised(text[0], getattr(text[0], "tone", "plain"))
    write("\n".join(text) + "\n")


def print_page(lines: Iterable["Runs"]) -> None:
    """The short text; coloured on a terminal that has colours, unless NO_COLOR is set."""
    if not _coloured():
        from tonnage.render.brief.layout import plain

        write("\n".join(map(plain, lines)) + "\n")
        return
    from tonnage.cli.common.colour import coloured

    write(coloured(lines))


def _coloured() -> bool:
    """Whether standard output takes colours."""
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("dumb", "unknown")


def print_document(answer: DocumentedAnswer, detail: str) -> None:
    """The document of an answer, or its summary, which has at most 8 kB because it stands on one line."""
    print_json(document_of(answer, detail), indent=2 if detail == FULL else -1)


def print_answer(answer: Any, *, as_json: str | None, formulas: bool, verbose: bool) -> None:
    """An answer of train or serve. `as_json`: how much of its document is printed instead of the text; `verbose`: the
    text has every figure and every input.
    """
    if as_json:
        print_document(answer, as_json)
        return
    if not (formulas or verbose):
        from tonnage.render.brief.answer import answer_text
        from tonnage.render.brief.layout import terminal_width

        print_page(answer_text(answer, terminal_width()))
        return
    from tonnage.render.text import answer_lines

    print_lines(
        answer_lines(
            answer.without_trees(),
            answer.memory,
            formulas=formulas,
            others=answer.others if formulas else (),
            opened=answer.opened,
        )
    )


def ready_to_plot(path: str | None) -> None:
    """What is not installed is said before the work, not after it."""
    if path is not None:
        from tonnage.render.plot import check_extra

        check_extra(path)


def plotted(answer: Any, path: str | None) -> int:
    """The status: what keeps a plot from being written is said after the answer, and does not take it back."""
    if path is None:
        return int(answer.status)
    from tonnage.kernel.errors import TonnageError
    from tonnage.render.plot import note_of_plot, write_plot

    try:
        write_plot(answer, path)
        if note := note_of_plot(path):
            print(say("note: {what}", what=note), file=sys.stderr)
    except TonnageError as error:
        print(in_error(error, "--plot: "), file=sys.stderr)
        return error.exit_status
    return int(answer.status)


def in_error(error: object, of: str = "") -> str:
    """The line that says what is wrong."""
    return f"{say('error: ')}{of}{worded(str(error))}"


def write(text: str) -> None:
    """Write to stdout; Unwritable where that cannot be done. A reader that has left (`| head -1`) ends nothing: the
    status is still that of the answer.
    """
    if sys.stdout is None:  # closed by the shell: >&-
        raise Unwritable("cannot write the answer: standard output is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise Unwritable(Message("cannot write the answer: {strerror}", strerror=error.strerror or error)) from None


def forgive_encodings() -> None:
    """Print what an encoding does not have (LANG=C, cp1252) as \\u4ebf instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


STYLES = {"good": "bold green", "bad": "bold red", "warn": "bold yellow", "plain": "bold"}


def _emphasised(line: str, tone: str) -> str:
    """The line in the colour of its verdict, as far as the terminal has colours."""
    from io import StringIO

    from rich.console import Console

    held = StringIO()
    console = Console(file=held, highlight=False, force_terminal=True)
    if console.legacy_windows:  # has no escape codes
        return line
    console.print(line, style=STYLES[tone], markup=False, soft_wrap=True, end="")
    return held.getvalue()


def _discard(stream: TextIO) -> None:
    """Send what is still in the buffer nowhere, so that Python's own flush at exit does not fail once more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


# ---- What a long command shows of its progress, on a terminal only.


class Bar:
    """One field for each stage that is begun, of as many as are expected, on standard error."""

    def __init__(self, expected: int = 0):
        self.expected, self.begun = expected, 0

    def __call__(self, stage: str) -> None:
        self.begun += 1
        if sys.stderr.isatty():
            left = max(self.expected - self.begun, 0)
            print(f"\r\x1b[K[{'#' * self.begun}{'.' * left}] {say(stage)}", end="", file=sys.stderr, flush=True)

    def over(self) -> None:
        """Takes the bar away."""
        if self.begun and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
