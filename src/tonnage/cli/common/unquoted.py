"""Names with blanks that were typed without quotes: `serve llama 3.1 8b --on 8 x h100` is `serve "llama 3.1 8b" --on
"8 x h100"`, where the words together are a name and the first alone is none.
"""

from collections.abc import Iterator, Mapping, Sequence

from tonnage.cli.common.outputs import ENDINGS, JSON, MARKDOWN
from tonnage.kernel.errors import TonnageError
from tonnage.question.option import Option
from tonnage.question.subjects.model import ON
from tonnage.verbs.answered import DETAILS

WITHOUT_VALUE = ("--csv", "--offline", "--help", "-h", "--help-all")


def quoted(words: Sequence[str], flags: Mapping[str, Option], named: int = 0) -> list[str]:
    """The words with each name in one. `named`: words that stand alone before the model."""
    found = list(words)
    if ON.flag in found:
        at = found.index(ON.flag) + 1
        end = next((end for end in range(at, len(found)) if found[end].startswith("-")), len(found))
        if end - at > 1 and not _is_machine(found[at]):
            longest = next((last for last in range(end, at + 1, -1) if _is_machine(" ".join(found[at:last]))), at + 1)
            found[at:longest] = [" ".join(found[at:longest])]
    alone = list(positional_places(found, flags))[named:]
    together = len(alone) > 1 and alone[-1] - alone[0] == len(alone) - 1
    if together and _is_model(" ".join(found[at] for at in alone)):
        found[alone[0] : alone[-1] + 1] = [" ".join(found[at] for at in alone)]
    return found


def positional_places(words: Sequence[str], flags: Mapping[str, Option]) -> Iterator[int]:
    """Places of the words that are neither an option nor the value of one."""
    skip = False
    for at, word in enumerate(words):
        if word == "--":
            return
        if skip:
            skip = False
        elif word.startswith("-"):
            following = words[at + 1] if at + 1 < len(words) else ""
            skip = "=" not in word and _takes_value(word, following, flags)
        else:
            yield at


def _takes_value(word: str, following: str, flags: Mapping[str, Option]) -> bool:
    """Whether the next word is the value of this option; one that is not known has one, as most have."""
    name = word.replace("_", "-")
    if name in (JSON, MARKDOWN):
        return following in DETAILS if name == JSON else following.lower().endswith(ENDINGS)
    if name in WITHOUT_VALUE:
        return False
    option = flags.get(name)
    return option is None or option.read is not None


def _is_machine(name: str) -> bool:
    from tonnage.catalogue.clusters import cluster

    try:
        return bool(cluster(name))
    except TonnageError:
        return False


def _is_model(name: str) -> bool:
    from tonnage.models import kind

    try:
        return kind(name) in ("catalogue", "derivative")
    except TonnageError:
        return False
