"""Options of a sweep that apply only beside some values of what it varies: where they do not, a plan is estimated
without them.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from tonnage.architectures import Model
from tonnage.estimate.answer.companions import ask_applicable
from tonnage.estimate.plan.rule import expert_counts
from tonnage.search.removed import Tally
from tonnage.search.sweep.spec import Spec

T = TypeVar("T")
OF_EXPERTS = ("expert_parallel_size", "expert_tensor_parallel_size")


def column_of(value: Any, count: int, *, is_left_out: bool) -> np.ndarray:
    """The column of an option in `count` rows; without a value where the option was left out."""
    return np.full(count, None, dtype=object) if is_left_out else np.full(count, value)


def size_of_experts(spec: Spec, model: Model, columns: dict[str, np.ndarray], tally: Tally) -> dict[str, np.ndarray]:
    """The sizes with those of experts at 1 for a model without experts, where the sweep has several models; of
    several values at the first.
    """
    if len(spec.models) == 1 or expert_counts(model):
        return columns
    columns_left = dict(columns)
    for axis in spec.inner:
        if axis.name in OF_EXPERTS and axis.values[0] != 1:
            at = columns[axis.name] == axis.values[0]
            columns_left[axis.name] = np.where(at, 1, columns[axis.name])
            tally.leave_out([axis.name], int(np.count_nonzero(at)))
    return columns_left


class Companions:
    """Asks the questions of one block of a sweep, whose outer options have the values `choices`.

    An option that is varied itself and does not apply is left out at its first value and refused at the others, so that
    no plan is there twice.
    """

    def __init__(self, spec: Spec, choices: Mapping[str, Any]):
        several = [axis for axis in spec.axes if len(axis.values) > 1]
        self.varied = frozenset(axis.name for axis in several) | ({"model"} if len(spec.models) > 1 else set())
        self.repeated = [axis.name for axis in several if axis.name in choices and choices[axis.name] != axis.values[0]]

    def ask(self, ask: Callable[[dict[str, Any]], T], options: Mapping[str, Any]) -> tuple[T, frozenset[str]]:
        """The answer, and the names of the options that it was asked without."""
        answer, left_out = ask_applicable(ask, options, self.varied, self.repeated)
        return answer, frozenset(left_out)
