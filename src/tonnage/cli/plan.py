"""tonnage plan: a search. What is searched decides which options there are: --train, --serve or --inventory."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.question.form import Given
from tonnage.question.verbs import form_of, kind_of_plan
from tonnage.spelling.translation import translated

HELP = (
    "the best plans and machines for a training run (--train), for users (--serve), or for a pool of unlike "
    "machines (--inventory)"
)
MODES = {"--train": "forms.plan_training", "--serve": "forms.plan_serving", "--inventory": "forms.plan_pool"}


def mode(words: Sequence[str]) -> ModuleType:
    """The module of the search that the words ask for; of a training run where they name none."""
    flags = {word.partition("=")[0] for word in words}
    modes = [name for flag, name in MODES.items() if flag in flags]
    if not modes and len(flags) > 1:
        typed = [flag for flag in flags if flag.startswith("-")]
        translation = translated([*words], form_of("plan", "serve").flags, "serve")
        read = [word.partition("=")[0] for word in translation.words if word.startswith("-")]
        modes = [MODES[f"--{kind_of_plan((*typed, *read))}"]]
    if {"--train", "--serve"} <= flags:
        raise InvalidInput(Message("{--train} and {--serve} are two questions: give one. Got both."))
    return import_module(f"tonnage.cli.{modes[-1] if modes else MODES['--train']}")


def spelled(words: Sequence[str]) -> list[str]:
    """`plan serve MODEL` and `plan train MODEL` as their options: `plan MODEL --serve`."""
    first = next((at for at, word in enumerate(words) if not word.startswith("-")), None)
    if first is None or f"--{words[first]}" not in MODES or words[first] == "inventory":
        return list(words)
    return [*words[:first], f"--{words[first]}", *words[first + 1 :]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of a training run: every other search is chosen by `mode`."""
    mode(()).add_arguments(parser)


def run(arguments: Given) -> int:
    """As `add_arguments`."""
    return int(mode(()).run(arguments))
