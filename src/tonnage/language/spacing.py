"""A blank stands between a Han character and a Latin letter or digit, and none between two Han characters. A
translation cannot know which of the two its values are, so the rule is kept where a value is put in.
"""

import re
from collections.abc import Iterable
from string import Formatter
from typing import Any

WIDE = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
_HAN_BLANK = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef] $")
_BLANK_HAN = re.compile(r" [\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
_ENDS_HAN, _HAN = re.compile(r"[\u4e00-\u9fff]$"), re.compile(r"[\u4e00-\u9fff]")
_ENDS_LATIN, _LATIN = re.compile(r"[A-Za-z0-9]['`]?$"), re.compile(r"['`]?[A-Za-z0-9$]|--?[A-Za-z0-9]")


def joined(pieces: Iterable[str]) -> str:
    """The pieces of a text and its values, with the blanks that their neighbours ask for.

    >>> joined(["用 ", "8 张加速卡", " 训练"]), joined(["能耗是", "H100", "的"])
    ('用 8 张加速卡训练', '能耗是 H100 的')
    """
    made = before = ""
    for piece in filter(None, pieces):
        if not before or " " in (before, piece):  # a blank alone parts two values
            made += piece
        elif _HAN_BLANK.search(made) and WIDE.match(piece):
            made = made[:-1] + piece
        elif WIDE.match(made[-1]) and _BLANK_HAN.match(piece):
            made += piece[1:]
        elif (_ENDS_HAN.search(made) and _LATIN.match(piece)) or (_ENDS_LATIN.search(made) and _HAN.match(piece)):
            made += " " + piece
        else:
            made += piece
        before = piece
    return made


def filled(text: str, values: dict[str, Any]) -> str:
    """A text with its named values put in."""
    pieces = []
    for literal, name, form, conversion in Formatter().parse(text):
        pieces.append(literal)
        if name is not None:
            shown = f"!{conversion}" if conversion else ""
            pieces.append(f"{{{name}{shown}{f':{form}' if form else ''}}}".format(**values))
    return joined(pieces)
