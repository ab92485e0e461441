"""tonnage train: memory of a training run."""

import argparse
from typing import Any

from tonnage.cli.common.parser import add_form, add_output
from tonnage.question.given import Given, values
from tonnage.question.looked_up import model_and_machine
from tonnage.question.option import options_of
from tonnage.question.subjects.advice import ADVICE
from tonnage.question.verbs import form_of

HELP = "does this training run fit, where does its memory go, and how long does it take?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("train"))
    add_output(parser, reports=True).add_argument(
        "--plot",
        metavar="FILE",
        help="pictures of memory, the step and money besides: FILE.html (a page that needs no network), .png or .svg",
    )


def run(arguments: Given) -> int:
    from tonnage.cli.common.print import plotted, print_answer, ready_to_plot
    from tonnage.cli.common.report import prints_report, reported

    made = answer(arguments)
    ready_to_plot(arguments.plot)  # after what is wrong with the question
    if not prints_report(arguments, made):
        print_answer(made, as_json=arguments.json, formulas=arguments.formulas)
    return reported(arguments, made, plotted(made, arguments.plot))


def answer(arguments: Given) -> Any:
    """The answer itself, of which documents and pictures are made."""
    from tonnage.estimate.answer.training import train
    from tonnage.question.subjects.money import BillOptions
    from tonnage.question.subjects.run import RunOptions
    from tonnage.question.subjects.training import TrainingOptions

    options = TrainingOptions(**values(arguments, options_of(TrainingOptions)))
    run = RunOptions(**values(arguments, options_of(RunOptions)))
    money = BillOptions(**values(arguments, options_of(BillOptions)))
    model, machine, reserve = model_and_machine(arguments)
    advise = values(arguments, (ADVICE,)).get("advice", True)
    return train(model, machine, options, run, money, reserve_bytes=reserve, advise=advise)
