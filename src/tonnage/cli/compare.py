"""tonnage compare: one matrix of answers. What is compared decides which options there are: those of serve, or with
--train those of train.
"""

import argparse
from collections.abc import Sequence
from types import ModuleType

from tonnage.cli.forms import compare_serving, compare_training
from tonnage.question.form import Given

HELP = compare_serving.HELP


def mode(words: Sequence[str]) -> ModuleType:
    """The module of the verb whose options are read: serve, where --train is not said."""
    return compare_training if "--train" in words else compare_serving


def spelled(words: Sequence[str]) -> list[str]:
    """`compare A B` as `compare A,B`, and machines that stand alone as `--on`; `compare train A B` as `--train`."""
    from tonnage.cli.forms.compare_words import with_lists

    return with_lists(words)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of a call without --train."""
    compare_serving.add_arguments(parser)


def run(arguments: Given) -> int:
    return compare_serving.run(arguments)
