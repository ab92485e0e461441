"""The tone of a line: what a terminal colours it by, in whatever language it is."""

from typing import Literal, Self

Tone = Literal["good", "warn", "bad", "plain"]


class Toned(str):
    """A first line with its tone; a plain text has none.

    >>> Toned("fits: yes", "good").tone
    'good'
    """

    __slots__ = ("tone",)
    tone: Tone

    def __new__(cls, text: str, tone: Tone) -> Self:
        toned = super().__new__(cls, text)
        toned.tone = tone
        return toned
