"""`tonnage max` of a served model: all options of serve but the one that is looked for."""

import argparse

from tonnage.cli import _options as o
from tonnage.cli import max as asked
from tonnage.cli._max_print import print_maximum
from tonnage.cli.serve import LOAD_OPTIONS, MONEY_OPTIONS, OPTIONS

HELP = asked.HELP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    o.read_as(parser, "serve")
    asked.add_what(parser, "serve")
    o.add_model(parser)
    o.add(parser, o.COMMON, "machine")
    o.add(parser, OPTIONS, "serving")
    o.add(parser, LOAD_OPTIONS, "load and service level")
    o.add(parser, MONEY_OPTIONS, "money and power")
    o.add_output(parser, reports=True)


def run(arguments: argparse.Namespace) -> int:
    from tonnage.catalogue import cluster
    from tonnage.estimate.load.options import LoadOptions
    from tonnage.estimate.money.bill import BillOptions
    from tonnage.estimate.serving.options import ServingOptions
    from tonnage.search.maximum.ask import serving_maximum
    from tonnage.search.maximum.whats import what_of

    what = what_of(arguments.what, "serve")
    options = ServingOptions(**o.values(arguments, OPTIONS))
    load = LoadOptions(**o.values(arguments, LOAD_OPTIONS))
    money = BillOptions(**o.values(arguments, MONEY_OPTIONS))
    common = o.values(arguments, o.COMMON)
    machine = cluster(o.required(common, o.COMMON[0]))
    model = None if o.no_model(arguments) else o.read_model(arguments)
    found = serving_maximum(what, model, machine, options, load, money, reserve_bytes=common.get("reserve", 0))
    return print_maximum(arguments, found)
