"""Lines of the short text with the colours of a terminal: the only part of it that needs rich."""

from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.text import Text

from tonnage.render.brief.layout import GLUE, Runs

STYLES = {
    "good": "bold green",
    "warn": "bold yellow",
    "bad": "bold red",
    "plain": "bold",
    "label": "bold",
    "code": "cyan",
}


def coloured(lines: Iterable[Runs]) -> str:
    """The lines with escape codes, as far as the terminal knows colours; the characters are those of the plain text."""
    held = StringIO()
    console = Console(file=held, highlight=False, force_terminal=True, width=1000, legacy_windows=False)
    for line in lines:
        text = Text()
        for piece, style in line:
            text.append(piece.replace(GLUE, " "), STYLES.get(style, style) or None)
        text.rstrip()
        console.print(text, soft_wrap=True)
    return held.getvalue()
