"""tonnage plan --serve: the best machines and plans to serve a model to users."""

import argparse
from typing import Any

from tonnage.cli.common.parser import add_form, add_output
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.plan_serve import answer

HELP = (
    "which machines, how many of them, and how is the model spread over them, to serve these users within these limits?"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("plan", "serve"))
    add_output(parser, reports=True, summary=True)


def run(arguments: Given) -> int:
    from tonnage.cli.common.outputs import prints_report, reported
    from tonnage.cli.common.print import print_document, print_lines, print_page

    result: Any = answer(arguments)
    if prints_report(arguments, result):
        pass
    elif arguments.json:
        print_document(result, arguments.json)
    elif not (arguments.formulas or arguments.verbose):
        from tonnage.render.brief.layout import terminal_width
        from tonnage.render.brief.plan_serving import plan_text

        print_page(plan_text(result, terminal_width()))
    else:
        from tonnage.render.plans.serving import plan_lines

        print_lines(plan_lines(result.to_dict(), result.best, formulas=arguments.formulas))
    return reported(arguments, result, result.status)
