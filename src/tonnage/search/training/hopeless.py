"""Choices of names that a runtime refuses whatever the sizes of a plan are: known from two plans, so that no search
walks all the others.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from tonnage.estimate.plan.rule import expert_counts
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.runtimes import training_runtime
from tonnage.search.training.choices import SIZES
from tonnage.search.training.space import ABILITIES, Group, Space, Stack
from tonnage.search.training.walk import reason


def refusal(space: Space, choices: Mapping[str, Any]) -> InvalidPlan | None:
    """The error of a choice that the runtime refuses with all sizes 1, and in the same words with all sizes 2; None
    where another size may do.

    A refusal that depends on a size names it, or is not made with both.
    """
    runtime = training_runtime(choices["runtime"])
    twos = {name: 2 for name, ability in ABILITIES.items() if getattr(runtime, ability)}
    if not expert_counts(space.model):
        twos.pop("expert_parallel_size", None)
    one, other = _error(space, choices, 1, {}), None
    if one is not None:
        alone = space.largest.size == 1  # whose runtimes are not those of several
        other = _error(space, choices, 1, {"micro_batch_size": 2}) if alone else _error(space, choices, 16, twos)
    return one if one is not None and str(one) == str(other) else None


def check_choices(spaces: Iterable[Space]) -> None:
    """Raise the first refusal where every choice of all spaces is refused: no search would find a plan."""
    first: InvalidPlan | None = None
    for space in spaces:
        for choices in space.choices:
            error = refusal(space, choices)
            if error is None:
                return
            first = first or error
    if first is not None:
        raise first


class Hopeless:
    """Choices of a space that were refused once, and would be whatever their sizes are."""

    def __init__(self, space: Space):
        self.space = space
        self._known: dict[tuple[tuple[str, Any], ...], str] = {}

    def learn(self, group: Group) -> None:
        """One group of the choice was refused: would all others be?"""
        key = tuple(sorted(group.choices.items()))
        if key not in self._known:
            error = refusal(self.space, group.choices)
            self._known[key] = reason(error) if error else ""

    def has(self, group: Group | Stack) -> str:
        """Why all groups of the choice are refused; empty where they are not, or nobody knows yet."""
        return self._known.get(tuple(sorted(group.choices.items())), "") if self._known else ""


def _error(space: Space, choices: Mapping[str, Any], accelerators: int, sizes: Mapping[str, int]) -> InvalidPlan | None:
    machine = replace(space.largest, num_nodes=accelerators, accelerators_per_node=1)
    try:
        space.ask_plan(machine, dict.fromkeys(SIZES) | dict(choices) | dict(sizes))
    except InvalidPlan as error:
        return error
    except MissingDatum:
        return None
    return None
