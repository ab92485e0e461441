"""tonnage serve: memory of a serving replica, how fast it answers, and at what price."""

import argparse
from typing import Any

from tonnage.cli.common.config import add_config, answer_of
from tonnage.cli.common.parser import add_form, add_output
from tonnage.kernel.errors import InvalidInput
from tonnage.question.form import Given
from tonnage.question.verbs import form_of

HELP = "does this model serve these requests, how many would fit, how fast is each answered, and at what price?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("serve"))
    add_config(parser)
    add_output(parser, reports=True, summary=True).add_argument(
        "--plot", metavar="FILE", help="pictures besides: FILE.html (a page that needs no network), .png or .svg"
    )


def run(arguments: Given) -> int:
    from tonnage.cli.common.outputs import prints_report, reported
    from tonnage.cli.common.print import plotted, print_answer, print_document, print_lines, ready_to_plot
    from tonnage.estimate.answer.form import Answer
    from tonnage.verbs.serve import answer

    _check_output(arguments)
    result: Any = answer_of("serve", arguments, answer)
    ready_to_plot(arguments.plot)  # after what is wrong with the question
    if isinstance(result, Answer):
        if not prints_report(arguments, result):
            print_answer(result, as_json=arguments.json, formulas=arguments.formulas, verbose=arguments.verbose)
    elif arguments.for_my_machine:
        if arguments.json:
            print_document(result, arguments.json)
        else:
            from tonnage.render.machine import machine_lines

            print_lines(machine_lines(result.to_dict(), result.widest))
        return result.status
    elif not prints_report(arguments, result):
        if arguments.json:
            print_document(result, arguments.json)
        else:
            from tonnage.render.frontier import frontier_lines

            print_lines(frontier_lines(result.to_dict()))
    return reported(arguments, result, plotted(result, arguments.plot))


def _check_output(arguments: Given) -> None:
    """What an answer about many models is not shown as."""
    if not arguments.for_my_machine:
        return
    if arguments.plot is not None:
        raise InvalidInput("--for-my-machine has no pictures: leave out --plot.")
    for name in ("html", "markdown"):
        if getattr(arguments, name) is not None:
            raise InvalidInput("--for-my-machine has no report: leave out --{name}.", name=name)
