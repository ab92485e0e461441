"""tonnage serve: memory of a serving replica, how fast it answers, and at what price."""

import argparse

from msgspec.structs import replace

from tonnage.cli.common.parser import add_form, add_output
from tonnage.question.given import Given, values
from tonnage.question.looked_up import model_and_machine
from tonnage.question.option import options_of
from tonnage.question.subjects.advice import ADVICE
from tonnage.question.subjects.frontier import FRONTIER
from tonnage.question.verbs import form_of

HELP = "does this model serve these requests, how many would fit, how fast is each answered, and at what price?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("serve"))
    add_output(parser, reports=True).add_argument(
        "--plot", metavar="FILE", help="pictures besides: FILE.html (a page that needs no network), .png or .svg"
    )


def run(arguments: Given) -> int:
    from tonnage.cli.common.print import plotted, print_answer, ready_to_plot
    from tonnage.cli.common.report import prints_report, reported
    from tonnage.cli.forms import serve_many as many
    from tonnage.estimate.answer.serving import serve
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.money import SERVED, BillOptions
    from tonnage.question.subjects.serving import ServingOptions

    options = ServingOptions(**values(arguments, options_of(ServingOptions)))
    load = LoadOptions(**values(arguments, options_of(LoadOptions)))
    money = BillOptions(**values(arguments, SERVED))
    asked = values(arguments, FRONTIER)
    many.check(asked, arguments)
    if asked.get("for_my_machine"):
        ready_to_plot(arguments.plot)
        return many.my_machine(arguments, options, load, asked)
    model, machine, reserve = model_and_machine(arguments)
    ready_to_plot(arguments.plot)
    if asked.get("frontier"):
        return many.frontier(arguments, model, machine, replace(options, reserve_bytes=reserve), load, money, asked)
    advise = values(arguments, (ADVICE,)).get("advice", True)
    answer = serve(model, machine, options, load, money, reserve_bytes=reserve, advise=advise)
    if not prints_report(arguments, answer):
        print_answer(answer, as_json=arguments.json, formulas=arguments.formulas)
    return reported(arguments, answer, plotted(answer, arguments.plot))
