"""tonnage plan --serve: the best machines and plans to serve a model to users."""

import argparse

from msgspec.structs import replace

from tonnage.cli.common.parser import add_form, add_output
from tonnage.question.form import without
from tonnage.question.given import Given, values
from tonnage.question.looked_up import read_model
from tonnage.question.option import options_of
from tonnage.question.subjects.machine import RESERVE, TO_SERVE_ON
from tonnage.question.verbs import SIMULATED, form_of

HELP = (
    "which machines, how many of them, and how is the model spread over them, to serve these users within these limits?"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("plan", "serve"))
    add_output(parser, reports=True)


def run(arguments: Given) -> int:
    from tonnage.cli.common.print import print_json, print_lines
    from tonnage.cli.common.report import prints_report, reported
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.money import SERVED, BillOptions
    from tonnage.question.subjects.plan_serving import ServingPlanOptions
    from tonnage.question.subjects.serving import ServingOptions
    from tonnage.search.serving import plan_serving
    from tonnage.search.serving.machines import named

    said = values(arguments, (TO_SERVE_ON, RESERVE, *options_of(ServingPlanOptions)))
    machines = named(said.pop("on")) if "on" in said else None
    options = replace(
        ServingOptions(**values(arguments, options_of(ServingOptions))), reserve_bytes=said.pop("reserve", 0)
    )
    load = without(options_of(LoadOptions), SIMULATED)
    found = plan_serving(
        read_model(arguments),
        machines,
        ServingPlanOptions(**said),
        options,
        LoadOptions(**values(arguments, load)),
        BillOptions(**values(arguments, SERVED)),
    )
    if prints_report(arguments, found):
        pass
    elif arguments.json:
        print_json(found.document)
    else:
        from tonnage.render.plans.serving import plan_lines

        print_lines(plan_lines(found.to_dict(), found.best, formulas=arguments.formulas))
    return reported(arguments, found, found.status)
