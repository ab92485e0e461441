"""An error on the command line names options as they are typed: --lora-rank, where an estimate says lora_rank."""

import re
from collections.abc import Sequence

from tonnage.cli.common.parser import Parser
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.language import current, worded
from tonnage.question.naming import CODE, FLAG, Said, holder_of
from tonnage.question.read import OUTPUT
from tonnage.question.subjects.model import DIMENSIONS
from tonnage.spelling.flags import ours

_OF_MODELS = frozenset(option.name for option in DIMENSIONS)
# Names within a sentence, beside an option that has dashes already, and where a sentence begins.
_INSIDE = r"(?<![\w./'\"`=-])(?:{})(?![\w/'\"`=(]|\.\w)"
_BESIDE = r"(?<![\w./'\"`=-])(?:{})(?=(?:, | and | or |、| ?[和或] ?)--)"
_FIRST = r"\A(?:{})(?= must | takes | is | cannot |: | ?[必须：需是])"
# Words of an answer are Chinese in Chinese: an English one that a Han character or its comma follows is a name.
_IN_CHINESE = r"(?<![\w./'\"`=-])(?:{})(?= ?[\u4e00-\u9fff]|[，。；])"


def on_command_line(error: TonnageError, parser: Parser, words: Sequence[str]) -> tuple[str, str]:
    """What is wrong in English and in the current language, with options as they are typed."""
    said = _typed(parser, words)
    text = str(error)
    shown = [_dashed(each, parser, said) for each in (text, worded(text))]
    holder = "" if any(map(FLAG.search, shown)) else holder_of(text, said)
    if holder:
        shown = [f"{holder}: {shown[0]}", f"{holder}{': ' if current() == 'en' else '：'}{shown[1]}"]
    return shown[0], shown[1]


def _typed(parser: Parser, words: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of each option the last of our spellings, and its value; what stands alone is "model"."""
    try:
        read = ours(list(words), parser._option_string_actions, parser._verb)
    except InvalidInput:  # another tool's, which is the error
        return {}
    found: dict[str, tuple[str, str]] = {}
    alone: list[str] = []
    left = iter(zip(read, words, strict=True))
    for word, typed in left:
        flag, equals, value = word.partition("=")
        action = parser._option_string_actions.get(flag)
        if action is not None:
            following = not equals and action.nargs is None
            found[action.dest] = (flag, next(left, ("", ""))[1] if following else value)
        elif not word.startswith("-"):
            alone.append(typed)
    return {**found, "": ("", " ".join(alone))}


def _dashed(text: str, parser: Parser, said: Said) -> str:
    """With dashes where an option's name stands; names inside code and in quotes stay as they are."""
    known = {flag for flag in parser._option_string_actions if flag.startswith("--")}
    names = {action.dest for action in parser._actions if f"--{action.dest.replace('_', '-')}" in known} - OUTPUT
    if said.get("", ("", ""))[1] and not _OF_MODELS & said.keys():  # they are a file's
        names -= _OF_MODELS
    if "inventory" in said:  # its jobs have fields of the same names
        names &= said.keys()

    def flag(found: re.Match[str]) -> str:
        return said[found[0]][0] if found[0] in said else f"--{found[0].replace('_', '-')}"

    several = "|".join(sorted((re.escape(name) for name in names if "_" in name), key=len, reverse=True))
    if several:
        inside = re.compile(_INSIDE.format(several), re.ASCII)
        text = "".join(part if part.startswith("`") else inside.sub(flag, part) for part in CODE.split(text))
    first = "|".join(name for name in names if "_" not in name)
    if first:
        beside = re.compile(_BESIDE.format(first), re.ASCII)
        while text != (text := beside.sub(flag, text)):  # of a list, from its last name on
            pass
        text = re.sub(_FIRST.format(first), flag, text)
    given = "|".join(re.escape(name) for name in names & said.keys())
    return re.sub(_IN_CHINESE.format(given), flag, text, flags=re.ASCII) if given else text
