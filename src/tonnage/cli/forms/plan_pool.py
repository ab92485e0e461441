"""tonnage plan --inventory: a model, replicas of it, or jobs placed on a pool of unlike machines."""

import argparse
from typing import Any

from tonnage.cli.common.outputs import add_reports
from tonnage.cli.common.parser import add_form, add_json
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.verbs.plan_inventory import answer

HELP = (
    "what goes where on a pool of unlike machines: the layers or replicas of a model, or the jobs of the "
    "inventory, and what is proven of it"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("plan", "inventory"))
    group = parser.add_argument_group("output")
    add_json(group)
    add_reports(group)


def run(arguments: Given) -> int:
    from tonnage.cli.common.outputs import prints_report, reported
    from tonnage.cli.common.print import print_document, print_lines

    placement: Any = answer(arguments)
    if prints_report(arguments, placement):
        pass
    elif arguments.json:
        print_document(placement, arguments.json)
    else:
        from tonnage.render.plans.pool import pool_lines

        print_lines(pool_lines(placement.to_dict()))
    return reported(arguments, placement, placement.status)
