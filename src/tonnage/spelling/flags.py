"""Options of other tools, read from flags.toml when somebody types one that is not ours."""

import tomllib
from collections.abc import Container
from functools import cache
from pathlib import Path

from msgspec import Struct, convert

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, joined

FILE = Path(__file__).with_name("flags.toml")


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of one tool for one verb. `same`: its option -> ours; `differs`: its option -> what to write instead."""

    name: str
    source: str
    verb: str
    same: dict[str, str]
    differs: dict[str, str]


@cache
def tools() -> tuple[Tool, ...]:
    """All of flags.toml."""
    return convert(tomllib.loads(FILE.read_text(encoding="utf-8"))["tool"], tuple[Tool, ...])


def ours(words: list[str], known: Container[str], verb: str) -> list[str]:
    """The words with options spelled as here; InvalidInput for an option of another tool that means something else."""
    translated: list[str] = []
    for position, word in enumerate(words):
        if word == "--":
            return translated + words[position:]
        flag, equals, value = word.partition("=")
        following = value or next(iter(words[position + 1 :]), "")
        translated.append(f"{_flag(flag, known, verb, following)}{equals}{value}" if flag.startswith("-") else word)
    return translated


def assignment(word: str, verb: str) -> tuple[str, ...]:
    """What to say of `key=value`, as torchtune and Hydra write options; nothing where no tool has such a key."""
    key, equals, _ = word.partition("=")
    if not equals:
        return ()
    try:
        flag = _flag(f"--{key}", (), verb)
    except InvalidInput as error:
        return (str(error),)
    return (Message("Write {option}.", option=flag),) if _underscored(flag) != _underscored(f"--{key}") else ()


def _flag(flag: str, known: Container[str], verb: str, value: str = "") -> str:
    dashed = flag.replace("_", "-")
    for spelled in (flag, dashed):
        if spelled in known:
            return spelled
    mine = [tool for tool in tools() if tool.verb == verb]
    for theirs in (dashed, dashed[1:]):  # a field of a question has no dashes: dp is -dp
        for tool in mine:
            if theirs in tool.same:
                return tool.same[theirs]
        spellings: dict[str, list[str]] = {}
        for tool in mine:
            if theirs in tool.differs:
                spellings.setdefault(tool.differs[theirs], []).append(tool.name)
        if spellings:
            number = value if value.isascii() and value.replace(".", "", 1).isdigit() and len(value) < 10 else "4"
            name = flag if theirs == dashed else theirs
            raise InvalidInput(joined(" ", (_sentence(name, names, text, number) for text, names in spellings.items())))
    return flag


def _underscored(flag: str) -> str:
    return flag.replace("-", "_")


def _sentence(flag: str, names: list[str], text: str, number: str) -> str:
    """`text` of flags.toml as a sentence about the tools' option; {value} in it is the number that was typed."""
    of = joined(" and ", names)
    if text[0].islower():
        return Message(f"{{flag}} of {{names}} {text}", flag=flag, names=of, value=number)
    return Message("{flag} is an option of {names}. {text}", flag=flag, names=of, text=Message(text, value=number))
