"""tonnage train: memory of a training run."""

import argparse

from tonnage.cli.common.config import add_config, answer_of
from tonnage.cli.common.parser import add_form, add_output
from tonnage.question.form import Given
from tonnage.question.verbs import form_of

HELP = "does this training run fit, where does its memory go, and how long does it take?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("train"))
    add_config(parser)
    add_output(parser, reports=True, summary=True).add_argument(
        "--plot",
        metavar="FILE",
        help="pictures of memory, the step and money besides: FILE.html (a page that needs no network), .png or .svg",
    )


def run(arguments: Given) -> int:
    from tonnage.cli.common.outputs import prints_report, reported
    from tonnage.cli.common.print import plotted, print_answer, ready_to_plot
    from tonnage.verbs.train import answer

    result = answer_of("train", arguments, answer)
    ready_to_plot(arguments.plot)  # after what is wrong with the question
    if not prints_report(arguments, result):
        print_answer(result, as_json=arguments.json, formulas=arguments.formulas, verbose=arguments.verbose)
    return reported(arguments, result, plotted(result, arguments.plot))
