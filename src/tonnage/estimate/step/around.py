"""Before the first step and after the last: what loading and saving hold on the accelerator."""

from collections.abc import Iterator
from typing import NamedTuple

from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.pieces import largest_weight, largest_weights
from tonnage.estimate.step.views import StageView
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term


class Phase(NamedTuple):
    """What a phase of the step, or one outside of the steps, holds beside what stays for the whole step. `reserve`: of
    the allocator, where it is known; `optimizer`: states, where they are others than in a step.
    """

    name: str
    gradients: Term
    activations: list[Term]
    temporary: list[Term]
    buffers: Term
    reserve: list[Term] | None
    optimizer: Term | None = None

    @property
    def bytes(self) -> Number:
        """All of it, but for optimizer states."""
        parts = (*self.activations, *self.temporary, self.buffers, *(self.reserve or ()))
        return sum((term.value for term in parts), self.gradients.value)


def around(rank: StageView) -> Iterator[Phase]:
    """Loading a base that is quantised on the way, and saving weights that are gathered first.

    transformers loads parameter by parameter (core_model_loading.py), and bitsandbytes quantises each on the
    accelerator. DeepSpeed gathers the parameters of one module at a time (_zero3_consolidated_16bit_state_dict).
    """
    nothing = {name: Term.sum(name, unit="bytes") for name in ("gradients", "optimizer", "communication buffers")}
    if rank.plan.tuning.base_weights:
        width = rank.step.setting.types.parameter
        one = copies("a weight before it is quantised", width, largest_weight(rank.stage, rank.step.whole, ("layers",)))
        yield _phase(rank, "load", nothing["gradients"], nothing["optimizer"], nothing["communication buffers"], one)
    if rank.plan.deepspeed.stage3_gather_16bit_weights_on_model_save and rank.plan.zero_stage == 3:
        one = copies(
            "module that is gathered to be saved",
            rank.step.recipe.compute_bytes,
            largest_weights(rank.stage, rank.step.whole),
        )
        buffers = rank.step.framework.buffers(rank, None) or nothing["communication buffers"]
        yield _phase(rank, "save", rank.everything, rank.optimizer, buffers, one)


def _phase(rank: StageView, name: str, gradients: Term, optimizer: Term, buffers: Term, one: Term) -> Phase:
    reserve = rank.step.framework.reserve(rank, None, gradients.value)
    return Phase(name, gradients, [], [one], buffers, reserve, optimizer)
