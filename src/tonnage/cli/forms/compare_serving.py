"""tonnage compare: answers of `serve` beside each other."""

import argparse

from tonnage.cli.forms import compare
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.compare import compared

OPTIONS = compared(form_of("compare", "serve"))
HELP = compare.about(
    "which machine, precision and context for a served model, at what price? An option takes several values, "
    "with commas between: --on h100,l40s --context 8k,32k. "
    "(`tonnage compare --train --help`: for training)",
    OPTIONS,
    "enforce-eager",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    compare.add_arguments(parser, "serve")


def run(arguments: Given) -> int:
    return compare.run(arguments, "serve")
