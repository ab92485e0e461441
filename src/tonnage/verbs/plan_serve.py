"""`plan --serve`: the best machines and plans to serve a model."""

from msgspec.structs import replace

from tonnage.question.form import Given, values, without
from tonnage.question.looked_up import read_model
from tonnage.question.option import options_of
from tonnage.question.subjects.model import RESERVE, TO_SERVE_ON
from tonnage.question.verbs import SIMULATED
from tonnage.verbs.answered import DocumentedAnswer


def answer(arguments: Given) -> DocumentedAnswer:
    """The plans, of which documents and texts are made."""
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.money import SERVED, BillOptions
    from tonnage.question.subjects.plan import ServingPlanOptions
    from tonnage.question.subjects.serving import ServingOptions
    from tonnage.search.serving import plan_serving
    from tonnage.search.serving.machines import named

    searched = values(arguments, (TO_SERVE_ON, RESERVE, *options_of(ServingPlanOptions)))
    machines = named(searched.pop("on")) if "on" in searched else None
    options = replace(
        ServingOptions(**values(arguments, options_of(ServingOptions))), reserve_bytes=searched.pop("reserve", 0)
    )
    load = without(options_of(LoadOptions), SIMULATED)
    return plan_serving(
        read_model(arguments),
        machines,
        ServingPlanOptions(**searched),
        options,
        LoadOptions(**values(arguments, load)),
        BillOptions(**values(arguments, SERVED)),
    )
