"""An error names options as the face does that shows it: --lora-rank on the command line, lora_rank in a question and in Python.

What computes knows fields, what reads texts knows options as they were typed; so the name is put right in one place, where the error is shown.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.cli._options import MODEL_OPTIONS, Parser
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.language import current, sentence
from tonnage.spelling.flags import ours

# How an answer is shown, and files that it is written to: no part of a question.
OUTPUT = frozenset({"json", "formulas", "plot", "csv", "markdown", "html", "parquet", "help", "out", "lang"})
Said = Mapping[str, tuple[str, str]]  # option -> how it was typed, and its value
_OF_MODELS = frozenset(option.name for option in MODEL_OPTIONS)
_CODE = re.compile(r"(`[^`]*`)")
_QUOTED = re.compile(r"'([^']+)'")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*", re.ASCII)
# Names within a sentence, beside an option that has dashes already, and where a sentence begins.
_INSIDE = r"(?<![\w./'\"`=-])(?:{})(?![\w/'\"`=(]|\.\w)"
_BESIDE = r"(?<![\w./'\"`=-])(?:{})(?=(?:, | and | or |、| ?[和或] ?)--)"
_FIRST = r"\A(?:{})(?= must | takes | is | cannot |: | ?[必须：需是])"
# Words of an answer are Chinese in Chinese: an English one that a Han character or its comma follows is a name.
_IN_CHINESE = r"(?<![\w./'\"`=-])(?:{})(?= ?[\u4e00-\u9fff]|[，。；])"
_PARTS = (re.compile(r"[,;]"), re.compile(r"[,;x= ]"))


def on_command_line(error: TonnageError, parser: Parser, words: Sequence[str]) -> tuple[str, str]:
    """What is wrong in English and in the current language, with options as they are typed."""
    said = _typed(parser, words)
    text = str(error)
    shown = [_dashed(each, parser, said) for each in (text, sentence(text))]
    holder = "" if any(map(_FLAG.search, shown)) else _holder(text, said)
    if holder:
        shown = [f"{holder}: {shown[0]}", f"{holder}{': ' if current() == 'en' else '：'}{shown[1]}"]
    return shown[0], shown[1]


def in_question(text: str, parser: Parser, question: Mapping[str, Any]) -> str:
    """The same sentence with fields in place of options."""

    def field(found: re.Match[str]) -> str:
        action = parser._option_string_actions.get(found[0])
        typed = found[0].removeprefix("--").replace("-", "_")
        return found[0] if action is None or action.dest in OUTPUT else typed if typed in question else action.dest

    shown = "".join(part if part.startswith("`") else _FLAG.sub(field, part) for part in _CODE.split(text))
    said = {name: (name, _joined(value)) for name, value in question.items() if not isinstance(value, bool | Mapping)}
    holder = "" if any(_names(shown, name) for name in question if "_" in name) else _holder(shown, said)
    return f"{holder}: {shown}" if holder and not shown.startswith(f"{holder} ") else shown


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
        text = "".join(part if part.startswith("`") else inside.sub(flag, part) for part in _CODE.split(text))
    first = "|".join(name for name in names if "_" not in name)
    if first:
        beside = re.compile(_BESIDE.format(first), re.ASCII)
        while text != (text := beside.sub(flag, text)):  # of a list, from its last name on
            pass
        text = re.sub(_FIRST.format(first), flag, text)
    given = "|".join(re.escape(name) for name in names & said.keys())
    return re.sub(_IN_CHINESE.format(given), flag, text, flags=re.ASCII) if given else text


def _holder(text: str, said: Said) -> str:
    """The option whose value the error quotes, where one alone has it and the error says no name of it."""
    quoted = _QUOTED.search(text)
    if quoted is None:
        return ""
    of = [name for name, (_, value) in said.items() if _has(value, quoted[1])]
    return said[of[0]][0] if len(of) == 1 and not _names(text, of[0]) else ""


def _has(value: str, part: str) -> bool:
    return part in (value, repr(value)[1:-1]) or any(
        part in (each.strip() for each in between.split(value)) for between in _PARTS
    )


def _names(text: str, name: str) -> bool:
    """Whether a name stands in a text; such as "on" may be any word, and does not count."""
    return len(name) > 2 and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.ASCII) is not None


def _joined(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
