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
    dashed, theirs = _dashed(parser, said), _theirs(parser, words)

    def spell(name: str) -> str:
        return said[name][0] if name in said and name in dashed else theirs.get(name) or dashed.get(name, name)

    text = spelled(error, spell)
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


def _theirs(parser: Parser, words: Sequence[str]) -> dict[str, str]:
    """Options of ours -> the option of another tool that was typed for each and takes the same value."""
    try:
        read = parser.translated(words).read
    except InvalidInput:
        return {}
    pairs = ((typed.split(), ours.split()) for typed, ours in read)
    return {ours[0]: typed[0].replace("_", "-") for typed, ours in pairs if len(typed) == len(ours) <= 2}


def _typed(parser: Parser, words: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of each option the last of its spellings, another tool's too, and its value; what stands alone is ""."""
    theirs = _theirs(parser, words)
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
            found[action.dest] = (
                theirs.get(typed.partition("=")[0], flag),
                next(left, ("", ""))[1] if following else value,
            )
        elif not word.startswith("-"):
            alone.append(typed)
    return {**found, "": ("", " ".join(alone))}
