"""Text in columns: a Han character is as wide as two of the others."""

from collections.abc import Iterator

NEVER_FIRST = "，。；：、）》」！？"  # of a line


def width(text: str) -> int:
    """Columns that a text takes on a terminal.

    >>> width("GiB"), width("显存")
    (3, 4)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def left(text: str, columns: int) -> str:
    """With blanks behind it, so that it takes so many columns.

    >>> left("显存", 6) + "|"
    '显存  |'
    """
    return text + " " * (columns - width(text))


def right(text: str, columns: int) -> str:
    """With blanks before it."""
    return " " * (columns - width(text)) + text


def wrapped(text: str, columns: int) -> list[str]:
    """Lines of at most so many columns. A line may end behind any Han character, but begins with no full stop or
    comma.
    """
    lines, line = [], ""
    for piece in _pieces(text):
        if line and width(line + piece.rstrip()) > columns:
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, *([line.rstrip()] if line.strip() else [])]


def _pieces(text: str) -> Iterator[str]:
    """Words with the blanks behind them, and Han characters with what may not stand before a line's end."""
    piece = ""
    for sign in " ".join(text.split()):
        if (
            piece
            and sign not in NEVER_FIRST
            and sign != " "
            and (piece[-1] == " " or _columns(piece[-1]) == 2 or _columns(sign) == 2)
        ):
            yield piece
            piece = ""
        piece += sign
    if piece:
        yield piece


def _columns(sign: str) -> int:
    from unicodedata import east_asian_width

    return 2 if east_asian_width(sign) in "WF" else 1
