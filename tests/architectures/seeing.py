"""Helpers of the tests of multimodal families: a model by its Hub id, and its branches."""

from collections.abc import Mapping
from typing import Any

from architectures.multimodal_configs import Case
from architectures.multimodal_more import CASES
from tonnage.architectures import Branch, Model, build


def read(name: str, **changes: Any) -> Model:
    """The model of a Hub id, with some fields of its config changed; a change to None takes the field away."""
    fields = {**CASES[name].fields, **changes}
    return build({key: value for key, value in fields.items() if not (key in changes and value is None)}, name)


def misses(cases: Mapping[str, Case]) -> dict[str, int]:
    """How far each model's count is from the exact one; empty where all agree."""
    counted = {name: build(case.fields, name).num_parameters() - case.parameters for name, case in cases.items()}
    return {name: difference for name, difference in counted.items() if difference}


def size(branch: Branch) -> int:
    return sum(weight.num_parameters * count for weight, count in branch.weighted())


def of_kind(model: Model, kind: str) -> Branch:
    (found,) = [branch for branch in model.branches if branch.kind == kind]
    return found
