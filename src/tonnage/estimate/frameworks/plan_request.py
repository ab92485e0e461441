"""What a framework sees of a run while its plan is made: what the user asked, and what is settled so far."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.runtimes import TrainingRuntime


class PlanRequest(Struct, frozen=True, kw_only=True):
    """`sizes`: of all groups of ranks; `zero_stage`; `offload`: the fields of the plan that say what lives on the
    host; `options`: as the user gave them; `question`: takes each value with where it came from, and warnings.
    """

    model: Model
    runtime: TrainingRuntime
    sizes: Mapping[str, Any]
    zero_stage: int
    offload: Mapping[str, Any]
    options: TrainingOptions
    question: Question
