"""tonnage compare --train: answers of `train` beside each other."""

import argparse

from tonnage.cli import _compare as c
from tonnage.cli import train
from tonnage.cli._bill_options import BILL_OPTIONS
from tonnage.cli._run_options import RUN_OPTIONS

OPTIONS = (*train.OPTIONS, *RUN_OPTIONS, *BILL_OPTIONS)
HELP = f"""which machine, precision and sequence length for a training run, at what price?

{c.lists(OPTIONS, "compile")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    groups = ((train.OPTIONS, "training"), (RUN_OPTIONS, "run"), (BILL_OPTIONS, "money, power and disks"))
    c.add_arguments(parser, "train", groups)


def run(arguments: argparse.Namespace) -> int:
    return c.run(arguments, "train", OPTIONS)
