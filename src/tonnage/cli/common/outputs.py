"""Files that an answer is written to are checked before the work: a path that cannot be written is bad input, not a
late surprise.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import is_folder
from tonnage.question.given import Given

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
