"""The least that any plan could take on an accelerator: its products and attention at the best shares of the peaks, and
nothing else.

Good for passing over a whole accelerator, or numbers of it, before any plan is looked at.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import TonnageError
from tonnage.search.training.space import Space
from tonnage.spec import Cluster, TrainingPlan


def ideal_seconds(space: Space) -> float:
    """Accelerator-seconds of a token of the space's fastest imaginable plan; 0 where nobody knows."""
    kinds = {
        (choice["runtime"], choice.get("precision")): choice
        for choice in space.choices
        if choice["recompute"] == "none"
    }
    found = [_of(space, choice, s) for choice in kinds.values() for s in space.sequences]
    return min(found, default=0.0) if kinds and all(found) else 0.0


def plan_alone(space: Space, choice: Mapping[str, Any], s: int) -> tuple[Cluster, TrainingPlan]:
    """One accelerator, and the plan of a choice of names on it, as if it fitted. TonnageError where it cannot be."""
    return space.alone, space.ask_alone(choice, s)[0]


def _of(space: Space, choice: Mapping[str, Any], s: int) -> float:
    try:
        alone, plan = plan_alone(space, choice, s)
        timing = Timing(space.model, plan, alone)
    except TonnageError:
        return 0.0
    if plan.method != "full":
        return 0.0
    kernels = timing.walk.kernels
    share = max(*kernels.shares.matrix.values(), kernels.shares.attention, kernels.shares.flash2 or 0) * max(
        1.0, *kernels.own.values(), kernels.power
    )
    names = [kernels.wide, *([kernels.narrow] if kernels.narrow in kernels.chip.dense_flops else [])]
    best = share * max(kernels.chip.peak(name) for name in names)
    flops = sum(
        float(spent.flops)
        for passes in timing.walk.stages
        for (_, kind), spent in passes.kernels.items()
        if kind in ("product", "experts", "attention")
    )
    return float(flops / best * timing.walk.framework / (s * plan.micro_batch_size))
