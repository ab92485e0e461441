"""Pictures of an answer: one page of HTML that needs no network, or one PNG or SVG. plotly is imported when one is
asked for.
"""

import os
from html import escape
from pathlib import Path
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import listed
from tonnage.kernel.reach import is_folder
from tonnage.render.plot.image import NEEDS_KALEIDO, NEEDS_PLOTLY, is_installed

ENDINGS = (".html", ".png", ".svg")
MAX_PATH_LENGTH = 300  # letters of a path in an error


def check_extra(path: str | os.PathLike[str] | None) -> None:
    """Before a long run: InvalidInput where a picture is asked for and what draws it is not installed."""
    ending = Path(path or "").suffix.lower()
    if ending in ENDINGS and not all(map(is_installed, ("plotly", "plotly.offline"))):
        raise InvalidInput("--plot: {needs_plotly}", needs_plotly=NEEDS_PLOTLY)
    if ending in ENDINGS[1:] and not is_installed("kaleido"):
        raise InvalidInput("--plot: {needs_kaleido}", needs_kaleido=NEEDS_KALEIDO)


def write_plot(answer: Any, path: str | os.PathLike[str]) -> None:
    """Write the pictures of an answer of `train` or `serve`, or of a frontier; the ending of `path` says the format.
    InvalidInput where that cannot be done.
    """
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput(
            "a plot is a file that ends in {endings} or {endings2}. Got {path}.",
            endings=listed(ENDINGS[:-1]),
            endings2=ENDINGS[-1],
            path=shown(os.fspath(path), MAX_PATH_LENGTH),
        )
    try:
        if not is_folder(file.parent):  # before a browser is started for nothing
            raise InvalidInput(
                "{path} cannot be written: {folder} is no folder.",
                path=shown(os.fspath(path), MAX_PATH_LENGTH),
                folder=shown(os.fspath(file.parent), MAX_PATH_LENGTH),
            )
        picture = _made(answer, ending)
        file.write_bytes(picture)
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        if isinstance(error, InvalidInput):
            raise
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(
            "{path} cannot be written: {why}.", path=shown(os.fspath(path), MAX_PATH_LENGTH), why=why
        ) from None


def note_of_plot(path: str | os.PathLike[str]) -> str:
    """What has to be said of a picture that was written, or nothing: its letters are those of a font that is not
    there.
    """
    from tonnage.language import current, say
    from tonnage.render.plot.image import lacks_font

    if Path(path).suffix.lower() != ".png" or not lacks_font(current()):
        return ""
    return say(
        "no font of this machine has Chinese characters, so the picture shows boxes in their place: install "
        "one (Debian: apt install fonts-noto-cjk), or write .html"
    )


def figure_of(answer: Any, kind: str) -> Any:
    """One of the pictures as a plotly.graph_objects.Figure. InvalidInput where there is none of the kind, or no
    plotly.
    """
    _, parts = title_and_panels(answer)
    drawn = {part.name: part for part in parts if part.traces}
    if not isinstance(kind, str) or kind not in drawn:
        raise InvalidInput("this answer has no figure {kind}. It has {drawn}.", kind=shown(kind), drawn=listed(drawn))
    try:
        from plotly.graph_objects import Figure
    except ImportError:
        raise InvalidInput(NEEDS_PLOTLY) from None
    from tonnage.render.plot.layout import layout

    part = drawn[kind]
    return Figure(
        data=list(part.traces),
        layout={**layout([part]), "title": {"text": escape(part.title)}, "height": part.height + 60},
    )


def _made(answer: Any, ending: str) -> bytes:
    title, parts = title_and_panels(answer)
    if ending == ".html":
        from tonnage.render.plot.page import page

        return page(title, parts).encode("utf-8", "replace")
    from tonnage.render.plot.image import image

    return image(title, parts, ending.removeprefix("."))


def title_and_panels(answer: Any) -> Any:
    from tonnage.estimate.answer.frontier import Frontier

    if isinstance(answer, Frontier):
        from tonnage.render.plot.frontier import frontier_panels

        return frontier_panels(answer)
    from tonnage.render.plot.panels import panels

    return panels(answer)
