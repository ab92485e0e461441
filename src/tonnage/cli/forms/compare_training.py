"""tonnage compare --train: answers of `train` beside each other."""

import argparse

from tonnage.cli.forms import compare
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.compare import compared

OPTIONS = compared(form_of("compare", "train"))
HELP = compare.about(
    "which machine, precision and sequence length for a training run, at what price? An option takes several values, "
    "with commas between: --on h100,l40s.",
    OPTIONS,
    "compile",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    compare.add_arguments(parser, "train")


def run(arguments: Given) -> int:
    return compare.run(arguments, "train")
