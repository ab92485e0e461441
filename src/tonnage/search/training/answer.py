"""The answer of `plan --train`: what was found, with its document and its text."""

from typing import Any

from tonnage.architectures import Model
from tonnage.documents.document import builtins
from tonnage.documents.plan import PlansDocument
from tonnage.kernel.message import Message
from tonnage.search.training.document import document_of
from tonnage.search.training.options import Asked
from tonnage.search.training.plan import Planned, Plans, plan_training


class TrainingPlans:
    """`plans`: the best first, each with its whole answer; `status`: 0 found, 3 nothing does, 4 not enough is known."""

    def __init__(self, found: Plans, document: PlansDocument):
        self.found, self.document = found, document

    @property
    def plans(self) -> tuple[Planned, ...]:
        return self.found.plans

    @property
    def status(self) -> int:
        return self.found.status

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)

    def __repr__(self) -> str:
        best = self.plans[0].machine.name if self.plans else Message("nothing: {why}", why=self.found.why)
        return f"<TrainingPlans of {self.found.model.name}: {best}>"


def answer(model: Model, asked: Asked) -> TrainingPlans:
    """Search and say."""
    found = plan_training(model, asked)
    return TrainingPlans(found, document_of(found, asked))
