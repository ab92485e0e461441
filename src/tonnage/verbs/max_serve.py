"""`max` of a served model."""

from tonnage.question.form import Given, required, values
from tonnage.question.looked_up import no_model, read_model
from tonnage.question.option import options_of
from tonnage.question.subjects.model import MACHINE, ON
from tonnage.verbs.answered import DocumentedAnswer


def answer(arguments: Given) -> DocumentedAnswer:
    """The maximum, of which the document and the text are made."""
    from tonnage.catalogue import cluster
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.maximum import what_of
    from tonnage.question.subjects.money import SERVED, BillOptions
    from tonnage.question.subjects.serving import ServingOptions
    from tonnage.search.maximum.ask import serving_maximum

    what = what_of(arguments.what, "serve")
    options = ServingOptions(**values(arguments, options_of(ServingOptions)))
    load = LoadOptions(**values(arguments, options_of(LoadOptions)))
    money = BillOptions(**values(arguments, SERVED))
    common = values(arguments, MACHINE)
    machine = cluster(required(common, ON))
    model = None if no_model(arguments) else read_model(arguments)
    return serving_maximum(what, model, machine, options, load, money, reserve_bytes=common.get("reserve", 0))
