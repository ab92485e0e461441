"""tonnage compare: answers of `serve` beside each other."""

import argparse

from tonnage.cli import _compare as c
from tonnage.cli import serve

OPTIONS = (*serve.OPTIONS, *serve.LOAD_OPTIONS, *serve.MONEY_OPTIONS)
HELP = f"""which machine, precision and context for a served model, at what price? (`tonnage compare --train --help`: for training)

{c.lists(OPTIONS, "enforce-eager")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    groups = ((serve.OPTIONS, "serving"), (serve.LOAD_OPTIONS, "load and service level"), (serve.MONEY_OPTIONS, "money and power"))  # fmt: skip
    c.add_arguments(parser, "serve", groups)


def run(arguments: argparse.Namespace) -> int:
    return c.run(arguments, "serve", OPTIONS)
