"""tonnage plan: a search. What is searched decides which options there are: --train, --serve or --inventory."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from tonnage.cli._print import write

HELP = "the best plans and machines for a training run (--train), for users (--serve), or for a pool of unlike machines (--inventory)"
MODES = {"--train": "_plan_training", "--serve": "_plan_serving", "--inventory": "_plan_pool"}


def mode(words: Sequence[str]) -> ModuleType | None:
    """The module of the search that the words ask for; None where they name none: training is searched."""
    said = {word.partition("=")[0] for word in words}
    found = [name for flag, name in MODES.items() if flag in said]
    if not found and not {"-h", "--help"} & said:
        found = [MODES["--train"]]
    return import_module(f"tonnage.cli.{found[-1]}") if found else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of a call without any of the three: only what they are."""
    for flag in MODES:
        parser.add_argument(flag, action="store_true", help=f"see `tonnage plan {flag} --help`")


def run(arguments: argparse.Namespace) -> int:  # only --help comes here
    write("")
    return 0
