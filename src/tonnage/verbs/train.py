"""`train`: one training run."""

from typing import TYPE_CHECKING

from tonnage.question.form import Given, values
from tonnage.question.looked_up import model_and_machine
from tonnage.question.option import options_of
from tonnage.question.subjects.model import ADVICE, AS_IS

if TYPE_CHECKING:
    from tonnage.estimate.answer.form import Answer


def answer(arguments: Given) -> "Answer":
    """The answer itself, of which documents and pictures are made."""
    from tonnage.estimate.answer.training import train
    from tonnage.question.subjects.money import BillOptions
    from tonnage.question.subjects.run import RunOptions
    from tonnage.question.subjects.training import TrainingOptions

    options = TrainingOptions(**values(arguments, options_of(TrainingOptions)))
    run = RunOptions(**values(arguments, options_of(RunOptions)))
    money = BillOptions(**values(arguments, options_of(BillOptions)))
    model, machine, reserve = model_and_machine(arguments)
    asked = values(arguments, (AS_IS, ADVICE))
    return train(
        model,
        machine,
        options,
        run,
        money,
        reserve_bytes=reserve,
        advise=asked.get("advice", True),
        choose=not asked.get("as_is", False),
    )
