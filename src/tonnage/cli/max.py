"""tonnage max: the most that fits. What it is of decides which options there are: those of serve, or those of train."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from tonnage.cli.common.parser import add
from tonnage.cli.common.print import write
from tonnage.kernel.message import joined, listed
from tonnage.question.form import Given

HELP = (
    "the largest context, users, layers, model, sequence, micro-batch or LoRA rank that fits, checked at the "
    "answer and just beyond it"
)
MODES = {"serve": "forms.max_serving", "train": "forms.max_training"}


def mode(words: Sequence[str]) -> ModuleType | None:
    """The module of what the words ask for: the first that names a quantity. None for a call that names none and
    asks for help.
    """
    from tonnage.question.subjects.maximum import is_what, what_of

    names = [word for word in words if not word.startswith("-")]
    verbs = [verb for verb in MODES if f"--{verb}" in words]
    name = next((word for word in names if is_what(word)), names[0] if names else None)
    if name is None or (not is_what(name) and {"-h", "--help", "--help-all"} & {*words}):
        return None
    verb = what_of(name, verbs[-1] if verbs else None).verb  # type: ignore[arg-type]
    return import_module(f"tonnage.cli.{MODES[verb]}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of a call that names no quantity: only what there is to name."""
    from tonnage.question.subjects.maximum import NAMES, WHATS, WHOSE

    parser.add_argument("what", nargs="?", metavar="WHAT", help=", ".join(NAMES))
    add(parser, WHOSE, "whose")
    parser.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/2)")
    lines = [joined("", (f"  {what.name:<14} ", what.about, f" ({what.verb})")) for what in WHATS]
    rest = "`tonnage max WHAT --help` lists the options of each: those of `tonnage serve` or `tonnage train`."
    parser.description = joined("\n\n", (HELP, joined("\n", ("WHAT:", *lines)), rest))


def run(arguments: Given) -> int:
    from tonnage.kernel.errors import InvalidInput
    from tonnage.question.subjects.maximum import NAMES

    if arguments.what is None:
        raise InvalidInput("WHAT is needed, the first word: {names}.", names=listed(NAMES))
    write("")
    return 0
