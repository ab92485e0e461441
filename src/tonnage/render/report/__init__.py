"""Reports: one answer as one file for those who decide, with the decision on its first page. Read from the document
that `--json` prints.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tonnage.documents.document import check_readable
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import joined
from tonnage.kernel.reach import is_folder
from tonnage.render.report.blocks import Report

ENDINGS = {"html": (".html", ".htm"), "markdown": (".md", ".markdown")}
MAX_PATH_LENGTH = 300  # letters of a path in an error


def check_extra() -> None:
    """Before a long run: InvalidInput where Jinja2 is not installed."""
    from tonnage.render.report.page import environment

    environment("html")


def report_of(document: Mapping[str, Any], *, command: str = "", date: str = "") -> Report:
    """The report of a document of train, serve, plan, compare or max, of this version or an older one that is still
    read. `command`: what asks it again; `date`: today, where none is said.
    """
    check_readable(document)
    from tonnage.kernel.version import __version__

    about = {"command": command, "version": __version__, "date": date or _today()}
    if "verdict" in document and "memory" in document:
        from tonnage.render.report.answer import answer_report

        return answer_report(document, **about)
    if "placed_as" in document:
        from tonnage.render.report.pool import pool_report

        return pool_report(document, **about)
    if "plans" in document:
        from tonnage.render.report.plans import serving_plans_report, training_plans_report

        return (
            serving_plans_report(document, **about) if "means" in document else training_plans_report(document, **about)
        )
    if "what" in document:
        from tonnage.render.report.maximum import maximum_report

        return maximum_report(document, **about)
    if "cells" in document:
        from tonnage.render.report.compare import compare_report

        return compare_report(document, **about)
    if "points" in document:
        from tonnage.render.report.frontier import frontier_report

        return frontier_report(document, **about)
    raise InvalidInput(
        "reports are of answers of train, serve, plan, compare and max: this document is of none of them."
    )


def html_of(document: Mapping[str, Any], *, command: str = "", date: str = "") -> str:
    """One HTML file that needs nothing but itself: no network, no script."""
    from tonnage.render.report.page import page

    return page(report_of(document, command=command, date=date))


def markdown_of(document: Mapping[str, Any], *, command: str = "", date: str = "") -> str:
    """The report for a pull request or a wiki."""
    from tonnage.render.report.page import markdown

    return markdown(report_of(document, command=command, date=date))


def notebook_of(document: Mapping[str, Any]) -> str:
    """The verdict, its bar and its first table, as part of a notebook's page."""
    from tonnage.render.report.page import notebook

    return notebook(report_of(document))


def short_markdown_of(document: Mapping[str, Any]) -> str:
    """The short report, for what shows Markdown alone."""
    from tonnage.render.report.page import short_markdown

    return short_markdown(report_of(document))


def write_report(
    document: Mapping[str, Any], path: str | os.PathLike[str], form: str, *, command: str = "", date: str = ""
) -> None:
    """`form`: html or markdown. InvalidInput where the path cannot be written, or ends as another form does."""
    file = Path(path)
    if file.suffix.lower() not in ENDINGS[form]:
        raise InvalidInput(
            "a report in HTML is a file that ends in {endings}. Got {path}."
            if form == "html"
            else "a report in Markdown is a file that ends in {endings}. Got {path}.",
            endings=joined(" or ", ENDINGS[form]),
            path=shown(os.fspath(path), MAX_PATH_LENGTH),
        )
    text = (html_of if form == "html" else markdown_of)(document, command=command, date=date)
    try:
        if not is_folder(file.parent):
            raise InvalidInput(
                "{path} cannot be written: {folder} is no folder.",
                path=shown(os.fspath(path), MAX_PATH_LENGTH),
                folder=shown(os.fspath(file.parent), MAX_PATH_LENGTH),
            )
        file.write_bytes(text.encode("utf-8", "replace"))
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        if isinstance(error, InvalidInput):
            raise
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(
            "{path} cannot be written: {why}.", path=shown(os.fspath(path), MAX_PATH_LENGTH), why=why
        ) from None


def _today() -> str:
    from tonnage.estimate.answer.training import today

    return today().isoformat()
