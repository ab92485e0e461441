"""`tonnage max` of a served model: all options of serve but the one that is looked for."""

import argparse

from tonnage.cli import max as asked
from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.forms.max_print import print_maximum
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.max_serve import answer

HELP = asked.HELP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("max", "serve"))
    add_output(parser, reports=True, summary=True)


def run(arguments: Given) -> int:
    return print_maximum(arguments, answer(arguments))
