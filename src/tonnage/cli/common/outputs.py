"""Files that an answer is written to are checked before the work: a path that cannot be written is bad input, not a
late surprise.
"""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tonnage.cli.common.print import in_error, write
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import is_folder
from tonnage.question.form import Given
from tonnage.verbs.answered import DETAILS, FULL

# ---- Reports from the command line: `--html FILE` and `--markdown FILE` beside an answer, `--markdown` alone instead
# of
# its text.

STDOUT = "-"  # --markdown without a file
LONGEST = 200  # characters of a path that are shown
REPORTS = ("html", "markdown", "plot", "parquet")
# Verb -> its options that name a file to write.
FILES = {"trace": ("save", "snapshot", "plot"), "measure": ("snapshot", "out")}


def check_outputs(verb: str, arguments: Given) -> None:
    """InvalidInput where a file that was asked for cannot be written."""
    _check_extra(verb, arguments)
    for name, path in _files(verb, arguments):
        if verb not in FILES:
            check_ending(name, path)
        if why := unwritable(path):
            raise InvalidInput(
                "--{name}: {path} cannot be written: {why}.", name=name, path=shown(path, LONGEST), why=why
            )


def _check_extra(verb: str, arguments: Given) -> None:
    """InvalidInput where a report was asked for and what lays it out is not installed. The table that `compare` prints
    as Markdown needs nothing.
    """
    markdown = getattr(arguments, "markdown", None)
    if getattr(arguments, "html", None) or (markdown and not (verb == "compare" and markdown == STDOUT)):
        from tonnage.render.report import check_extra

        check_extra()


def check_ending(form: str, path: str) -> None:
    """InvalidInput where a path ends as another format does."""
    ending, got = Path(path).suffix.lower(), shown(path, LONGEST)
    if form == "html" and ending not in (".html", ".htm"):
        raise InvalidInput("--html: a report in HTML is a file that ends in .html or .htm. Got {got}.", got=got)
    if form == "markdown" and ending not in (".md", ".markdown"):
        raise InvalidInput(
            "--markdown: a report in Markdown is a file that ends in .md or .markdown. Got {got}.", got=got
        )
    if form == "plot" and ending not in (".html", ".png", ".svg"):
        raise InvalidInput("--plot: a plot is a file that ends in .html, .png or .svg. Got {got}.", got=got)


def unwritable(path: str) -> str:
    """Why no file can be written there; nothing where one can, as far as the system says before it is tried."""
    if "\0" in path:
        return "embedded null byte"
    try:
        file = Path(path)
        if not is_folder(file.parent):
            return Message("{parent} is no folder", parent=shown(os.fspath(file.parent), LONGEST))
        if is_folder(file):
            return "Is a directory"
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            return "Permission denied"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _files(verb: str, arguments: Given) -> Iterator[tuple[str, str]]:
    for name in FILES.get(verb, REPORTS):
        path = getattr(arguments, name, None)
        if isinstance(path, str) and path != STDOUT:
            yield name, path


MARKDOWN, ENDINGS = "--markdown", (".md", ".markdown")
JSON = "--json"
HTML_HELP = "a report besides, its decision on one page of A4: FILE.html, which needs no network and no script"
MARKDOWN_HELP = "print the report as Markdown; with FILE.md, write it besides"
# Options that say how an answer is shown, and how many words each takes: no part of what asks it again.
SHOWN = {
    JSON: 0,
    "--formulas": 0,
    "--verbose": 0,
    "-v": 0,
    "--csv": 0,
    MARKDOWN: 0,
    "--html": 1,
    "--plot": 1,
    "--parquet": 1,
    "--lang": 1,
}
WITH_EQUALS = tuple(f"{flag}=" for flag in SHOWN)


def add_reports(group: Any) -> None:
    """--html and --markdown."""
    group.add_argument("--html", metavar="FILE", help=HTML_HELP)
    group.add_argument(MARKDOWN, metavar="FILE", nargs="?", const=STDOUT, help=MARKDOWN_HELP)


def parted(words: Iterable[str], details: Collection[str] = ()) -> list[str]:
    """--markdown takes the word behind it where that is a file of Markdown, and --json where it is one of `details`;
    never MODEL.
    """
    typed_words = list(words)
    parts: list[str] = []
    for at, word in enumerate(typed_words):
        if word == "--":
            return parts + typed_words[at:]
        following = typed_words[at + 1] if at + 1 < len(typed_words) else ""
        alone = word == MARKDOWN and not following.lower().endswith(ENDINGS)
        if details and word == JSON and following not in details:
            parts.append(f"{JSON}={FULL}")
        else:
            parts.append(f"{MARKDOWN}={STDOUT}" if alone else word)
    return parts


def prints_report(arguments: Given, result: Any) -> bool:
    """Print the answer as Markdown, where that is asked for."""
    if arguments.markdown != STDOUT:
        return False
    if arguments.json:
        raise InvalidInput(
            "--json and --markdown both print: give --markdown a file that ends in .md, or leave one of them out."
        )
    from tonnage.render.report import markdown_of

    write(markdown_of(result.to_dict(), command=command_line(arguments)))
    return True


def reported(arguments: Given, result: Any, status: int) -> int:
    """The status. What keeps a report from being written is said after the answer, and does not take it back."""
    for form, path in (("html", arguments.html), ("markdown", arguments.markdown)):
        if path is None or (form == "markdown" and path == STDOUT):
            continue
        from tonnage.render.report import write_report

        try:
            write_report(result.to_dict(), path, form, command=command_line(arguments))
        except TonnageError as error:
            print(in_error(error, f"--{form}: "), file=sys.stderr)
            status = error.exit_status
    return int(status)


def command_line(arguments: Given) -> str:
    """What was typed, without the words that say how the answer is shown."""
    import shlex

    return shlex.join(["tonnage", *_asking(getattr(arguments, "words", ()))])


def _asking(words: Sequence[str]) -> Iterator[str]:
    skip = 0
    for at, word in enumerate(words):
        if skip:
            skip -= 1
        elif word in SHOWN:
            following = words[at + 1] if at + 1 < len(words) else ""
            takes_file = word == MARKDOWN and following.lower().endswith(ENDINGS)
            skip = SHOWN[word] + (takes_file or (word == JSON and following in DETAILS))
        elif not word.startswith(WITH_EQUALS):
            yield word
