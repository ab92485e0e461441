"""An error on the command line names options as they are typed: --lora-rank, where an estimate says lora_rank."""

from collections.abc import Sequence

from tonnage.cli.common.parser import Parser
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import joined, plain, spelled
from tonnage.language import worded
from tonnage.question.naming import FLAG, Said, holder_of
from tonnage.question.read import OUTPUT
from tonnage.question.subjects.model import DIMENSIONS
from tonnage.spelling import ours

_OF_MODELS = frozenset(option.name for option in DIMENSIONS)


def on_command_line(error: TonnageError, parser: Parser, words: Sequence[str]) -> tuple[str, str]:
    """What is wrong in English and in the current language, with options as they are typed."""
    text = as_typed(error, parser, words)
    return plain(text), worded(text)


def as_typed(error: TonnageError, parser: Parser, words: Sequence[str]) -> str:
    """What is wrong, with options as they are typed."""
    said = _typed(parser, words)
    dashed = _dashed(parser, said)
    text = spelled(error, lambda name: said[name][0] if name in said and name in dashed else dashed.get(name, name))
    holder = "" if FLAG.search(text) else holder_of(text, said)
    if holder:
        text = joined(": ", (holder, text))
    return text


def _dashed(parser: Parser, said: Said) -> dict[str, str]:
    """The options of the command by the name that an error says: a field of a file that has the same name is none."""
    known = {flag for flag in parser._option_string_actions if flag.startswith("--")}
    names = {action.dest for action in parser._actions if f"--{action.dest.replace('_', '-')}" in known} - OUTPUT
    if said.get("", ("", ""))[1] and not _OF_MODELS & said.keys():  # they are a file's
        names -= _OF_MODELS
    if "inventory" in said:  # its jobs have fields of the same names
        names &= said.keys()
    return {name: f"--{name.replace('_', '-')}" for name in names}


def _typed(parser: Parser, words: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of each option the last of our spellings, and its value; what stands alone is "model"."""
    try:
        words = parser.translated(words).words
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
