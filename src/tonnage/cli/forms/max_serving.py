"""`tonnage max` of a served model: all options of serve but the one that is looked for."""

import argparse

from tonnage.cli import max as asked
from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.forms.max_print import print_maximum
from tonnage.question.given import Given, required, values
from tonnage.question.looked_up import no_model, read_model
from tonnage.question.option import options_of
from tonnage.question.subjects.machine import MACHINE, ON
from tonnage.question.verbs import form_of

HELP = asked.HELP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("max", "serve"))
    add_output(parser, reports=True)


def run(arguments: Given) -> int:
    from tonnage.catalogue import cluster
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.maximum import what_of
    from tonnage.question.subjects.money import SERVED, BillOptions
    from tonnage.question.subjects.serving import ServingOptions
    from tonnage.search.maximum.ask import serving_maximum

    what = what_of(arguments.what, "serve")
    options = ServingOptions(**values(arguments, options_of(ServingOptions)))
    load = LoadOptions(**values(arguments, options_of(LoadOptions)))
    money = BillOptions(**values(arguments, SERVED))
    common = values(arguments, MACHINE)
    machine = cluster(required(common, ON))
    model = None if no_model(arguments) else read_model(arguments)
    found = serving_maximum(what, model, machine, options, load, money, reserve_bytes=common.get("reserve", 0))
    return print_maximum(arguments, found)
