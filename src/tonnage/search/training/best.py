"""The best plans of a search: so many for each machine, ties broken by simplicity."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from tonnage.search.training.space import Group, Space
from tonnage.search.training.validity import Columns
from tonnage.search.training.walk import Walked, said

TIE = 1e-3  # plans whose times differ by less share a step of this ladder: no estimate tells them apart
# Choices that are no simpler than what everybody takes.
PLAIN = {
    "offload_optimizer": "none",
    "offload_parameters": "none",
    "offload_activations": "none",
    "precision": "bf16-mixed",
    "optimizer": "adamw",
}
CUTS = ("tensor_parallel_size", "context_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size")


@np.errstate(divide="ignore")  # of a bound of nothing: a step below all others
def rung(seconds: Any) -> Any:
    """The step of a ladder of times, each TIE longer than the one before it."""
    return np.floor(np.log(seconds) / np.log1p(TIE))


def least_beyond(rungs: np.ndarray) -> np.ndarray:
    """Seconds that are beyond these rungs, by a little more than rounding."""
    return np.exp((rungs + 1 + 1e-6) * np.log1p(TIE))


class Candidate(Struct, frozen=True, kw_only=True, eq=False):
    """A plan that was walked. `options`: all that the search chose; `machine`: which of the space's. `seconds`: of a
    step of `tokens`.

    `order`: what it is sorted by: its rung, then kinds of parallelism, then their sizes, then the seconds of a token,
    then the options.
    """

    machine: int
    options: dict[str, Any]
    needed: float
    high: float
    seconds: float
    tokens: float
    order: tuple[Any, ...]


Tell = Callable[[Candidate], None]  # hears of a plan that is the best of its machine so far


def simplicity(group: Group, inner: Mapping[str, Any]) -> tuple[Any, Any]:
    """How many kinds of cutting, copying again and moving away a plan has, and how far they go: arrays with an entry
    for each row.
    """
    cuts = [inner[name] for name in CUTS]
    kinds = sum((size > 1) * 1 for size in cuts) + (group.stages > 1) + (group.chunks > 1) + len(group.layout)
    kinds = (
        kinds
        + (group.choices["recompute"] != "none")
        + sum(PLAIN.get(name, value) != value for name, value in group.choices.items())
    )
    sizes = sum(np.log2(size) for size in cuts) + np.log2(group.stages) + np.log2(group.chunks)
    return kinds, sizes


class Best:
    """The `most` best plans of each machine."""

    def __init__(self, space: Space, most: int, tell: Tell | None = None):
        self.space, self.most, self.tell = space, most, tell
        self.of: list[list[Candidate]] = [[] for _ in space.machines]

    @property
    def any(self) -> bool:
        """Whether there is a plan of some machine."""
        return any(self.of)

    def worst(self) -> np.ndarray:
        """The rung that a plan of each machine must reach to be kept: shape (machines,)."""
        return np.array([plans[-1].order[0] if len(plans) == self.most else np.inf for plans in self.of])

    def put(self, group: Group, columns: Columns, walked: Walked, which: np.ndarray) -> None:
        """Plans of a group; `which`: those that hold all constraints, shape (plans,)."""
        chosen = np.flatnonzero(which)
        if not len(chosen):
            return
        seconds_per_token = walked.seconds[chosen] / walked.tokens[chosen]
        rungs, machine, row = rung(seconds_per_token), walked.machine[chosen], walked.row[chosen]
        kinds, sizes = (np.broadcast_to(value, (group.rows,))[row] for value in simplicity(group, group.inner))
        order = np.lexsort((row, seconds_per_token, sizes, kinds, rungs, machine))
        first = np.flatnonzero(np.diff(machine[order], prepend=-1))
        for start, end in zip(first, [*first[1:], len(order)], strict=True):
            for at in order[start : min(start + self.most, end)]:
                index = int(chosen[at])
                options = said(self.space, group, columns, int(row[at]), int(machine[at]))
                self._add(
                    Candidate(
                        machine=int(machine[at]),
                        options=options,
                        needed=float(walked.needed[index]),
                        high=float(walked.high[index]),
                        seconds=float(walked.seconds[index]),
                        tokens=float(walked.tokens[index]),
                        order=(
                            float(rungs[at]),
                            int(kinds[at]),
                            float(sizes[at]),
                            float(seconds_per_token[at]),
                            tuple(map(str, options.values())),
                        ),
                    )
                )

    def _add(self, candidate: Candidate) -> None:
        kept_plans = self.of[candidate.machine]
        kept_plans.append(candidate)
        kept_plans.sort(key=lambda kept_plan: kept_plan.order)
        del kept_plans[self.most :]
        if self.tell is not None and kept_plans[0] is candidate:
            self.tell(candidate)
