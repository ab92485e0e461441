"""tonnage plan --train: the best plans of a machine, or the best machines."""

import argparse
from typing import Any

from tonnage.cli.common.parser import add_form, add_output
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.plan_train import answer

HELP = (
    "find the best training plans: machine, parallel sizes, micro-batch, ZeRO stage, recomputation and runtime. "
    "For serving: `tonnage plan --serve --help`; for a pool of different machines: "
    "`tonnage plan --inventory --help`"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("plan", "train"))
    add_output(parser, reports=True, summary=True)


def run(arguments: Given) -> int:
    from tonnage.cli.common.following import shown_progress
    from tonnage.cli.common.outputs import prints_report, reported
    from tonnage.cli.common.print import print_document, print_lines, print_page

    with shown_progress("plans"):
        result: Any = answer(arguments)
    if prints_report(arguments, result):
        pass
    elif arguments.json:
        print_document(result, arguments.json)
    elif not (arguments.formulas or arguments.verbose):
        from tonnage.render.brief.layout import terminal_width
        from tonnage.render.brief.plan_training import plan_text
        from tonnage.search.training.launch.settings import launch_program

        program = launch_program(result.plans[0].plan) if result.plans else ""
        print_page(plan_text(result, program, terminal_width()))
    else:
        from tonnage.render.plans.training import plan_lines

        print_lines(plan_lines(result.to_dict(), result.plans[0].answer.memory if result.plans else None))
    return reported(arguments, result, result.status)
