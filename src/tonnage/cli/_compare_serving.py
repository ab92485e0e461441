"""tonnage compare: answers of `serve` beside each other."""

import argparse

from tonnage.cli import _compare
from tonnage.question.given import Given
from tonnage.question.verbs import form_of

OPTIONS = _compare.compared(form_of("compare", "serve"))
HELP = f"""which machine, precision and context for a served model, at what price? (`tonnage compare --train --help`: for training)

{_compare.lists(OPTIONS, "enforce-eager")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _compare.add_arguments(parser, "serve")


def run(arguments: Given) -> int:
    return _compare.run(arguments, "serve", OPTIONS)
