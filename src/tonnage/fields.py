"""The fields of a question, read off the parsers of the command line, so that there is one list: for the schemas of the API, the inputs of the page,
the tools of assistants, and for what `ask` takes."""

import argparse
import re
from functools import cache

from msgspec import Struct

from tonnage.cli import face
from tonnage.cli._compare import WHOLE
from tonnage.cli._named import OUTPUT
from tonnage.cli._options import Option, word
from tonnage.language import speaking

# Words that stand by themselves, in their order, and how many of each a verb takes; all else is an option.
POSITIONAL = {"what": ("max",), "model": ("models", "train", "serve", "plan", "max", "compare"), "names": ("rules",), "name": ("explain", "accelerators", "prices")}  # fmt: skip
WHOLE_OBJECTS = ("model", "inventory")  # what may be the content of a file
# Options that take several values whose text has commas, of every verb and of `plan`.
LISTS = WHOLE | {"names", "vary", "leave", "join"}
NO_DEFAULT = frozenset({"model", "on"})  # what a question says itself: no null of a list stands for it
FORMS = frozenset({"serve", "train"})  # which of a verb's forms is asked: one of them
LISTS_OF_PLAN = frozenset({"on", "weights", "kv_cache", "engine"})
_TAIL = re.compile(r"(?: \[(?P<unit>[^\]]*)\])?(?: \(default: (?P<default>.*)\))?\Z", re.DOTALL)


def takes_lists(verb: str, name: str) -> bool:
    """Whether several values may stand in a field of a question, as a list."""
    return (verb == "compare" and name not in FORMS) or name in LISTS or (verb == "plan" and name in LISTS_OF_PLAN)


class Field(Struct, frozen=True):
    """`kind`: switch, or text, or number where it is one that may be written as a text too; `alone`: it is no option, but stands by itself.
    `group`: as `--help` has it."""

    name: str
    help: str
    unit: str
    default: str
    group: str
    kind: str
    alone: bool = False

    @property
    def about(self) -> str:
        """The help with its unit and default, as `--help` has it."""
        unit = f" [{self.unit}]" if self.unit else ""
        return self.help + unit + (f" (default: {self.default})" if self.default else "")


@cache
def fields(verb: str, words: tuple[str, ...] = ()) -> dict[str, Field]:
    """Name -> field, in English and in the order of `--help`. `words`: those that choose the form of a verb that has several."""
    with speaking("en"):
        _, parser = face(verb, words)
    found = {}
    for group in parser._action_groups:
        for action in group._group_actions:
            if action.dest not in OUTPUT and (action.option_strings or verb in POSITIONAL.get(action.dest, ())):
                found[action.dest] = _field(action, group.title or "")
    return found


def _field(action: argparse.Action, group: str) -> Field:
    about = str(action.help or "").replace("%%", "%")
    tail = _TAIL.search(about)
    unit, default = (tail["unit"] or "", tail["default"] or "") if tail else ("", "")
    option: Option | None = getattr(action, "option", None)
    number = option is not None and option.read not in (word, None)
    kind = "switch" if action.nargs == 0 else "number" if number else "text"
    return Field(
        action.dest, about[: tail.start()] if tail else about, unit, default, group, kind, not action.option_strings
    )
