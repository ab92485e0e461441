"""What a format writes a file or a command from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.spec import Cluster, ServingPlan, TrainingPlan

if TYPE_CHECKING:  # what reads files only imports no estimate
    from tonnage.estimate.answer.form import Answer
else:
    Answer = Any


class PlannedRun(Struct, frozen=True, kw_only=True):
    """What a format writes from.

    verb: `train` or `serve`; `model`, `cluster`: those of the question; `place`: the model as a loader finds it
    question: what was asked, with what was chosen so that it fits
    answer: the answer to it; `training`, `serving`: its plan, the one of the verb
    """

    verb: str
    model: Model
    cluster: Cluster
    place: str
    question: Mapping[str, Any]
    answer: Answer
    training: TrainingPlan | None = None
    serving: ServingPlan | None = None

    def is_set(self, option: str) -> bool:
        """Whether the question says this option, or it was chosen."""
        return self.question.get(option) is not None
