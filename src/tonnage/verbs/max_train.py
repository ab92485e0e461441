"""`max` of a training run."""

from tonnage.question.form import Given, required, values
from tonnage.question.looked_up import no_model, read_model
from tonnage.question.option import options_of
from tonnage.question.subjects.model import MACHINE, ON
from tonnage.verbs.answered import DocumentedAnswer


def answer(arguments: Given) -> DocumentedAnswer:
    """The maximum, of which the document and the text are made."""
    from tonnage.catalogue import cluster
    from tonnage.question.subjects.maximum import what_of
    from tonnage.question.subjects.money import MONEY, BillOptions
    from tonnage.question.subjects.run import RunOptions
    from tonnage.question.subjects.training import TrainingOptions
    from tonnage.search.maximum.ask import training_maximum

    what = what_of(arguments.what, "train")
    options = TrainingOptions(**values(arguments, options_of(TrainingOptions)))
    run = RunOptions(**values(arguments, options_of(RunOptions)))
    money = BillOptions(**values(arguments, MONEY))
    common = values(arguments, MACHINE)
    machine = cluster(required(common, ON))
    model = None if no_model(arguments) else read_model(arguments)
    return training_maximum(what, model, machine, options, run, money, reserve_bytes=common.get("reserve", 0))
