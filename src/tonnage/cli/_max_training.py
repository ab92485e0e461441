"""`tonnage max` of a training run: all options of train but the one that is looked for."""

import argparse

from tonnage.cli import _options as o
from tonnage.cli import max as asked
from tonnage.cli._bill_options import BILL_OPTIONS
from tonnage.cli._max_print import print_maximum
from tonnage.cli._run_options import RUN_OPTIONS
from tonnage.cli.train import OPTIONS

HELP = asked.HELP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    o.read_as(parser, "train")
    asked.add_what(parser, "train")
    o.add_model(parser)
    o.add(parser, o.COMMON, "machine")
    o.add(parser, OPTIONS, "training")
    o.add(parser, RUN_OPTIONS, "run")
    o.add(parser, BILL_OPTIONS, "money, power and disks")
    o.add_output(parser, reports=True)


def run(arguments: argparse.Namespace) -> int:
    from tonnage.catalogue import cluster
    from tonnage.estimate.money.bill import BillOptions
    from tonnage.estimate.options.run_options import RunOptions
    from tonnage.estimate.plan.training_options import TrainingOptions
    from tonnage.search.maximum.ask import training_maximum
    from tonnage.search.maximum.whats import what_of

    what = what_of(arguments.what, "train")
    options = TrainingOptions(**o.values(arguments, OPTIONS))
    run = RunOptions(**o.values(arguments, RUN_OPTIONS))
    money = BillOptions(**o.values(arguments, BILL_OPTIONS))
    common = o.values(arguments, o.COMMON)
    machine = cluster(o.required(common, o.COMMON[0]))
    model = None if o.no_model(arguments) else o.read_model(arguments)
    found = training_maximum(what, model, machine, options, run, money, reserve_bytes=common.get("reserve", 0))
    return print_maximum(arguments, found)
