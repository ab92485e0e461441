"""What leaves the accelerator for host memory or NVMe: states of the parameters, and what layers keep for backward."""

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from tonnage.architectures import Block
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.views import StageView
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.runtimes import training_runtime
from tonnage.spec import TrainingPlan

MOST_IN_MEMORY = 1_000_000_000  # parameters, of weights on NVMe (DeepSpeed, deepspeed/runtime/zero/offload_config.py)
State = Literal["weights", "gradients", "optimizer"]


def offloaded(plan: TrainingPlan, state: State) -> Number:
    """The share of a state that lives outside of the accelerator.

    FSDP2's CPUOffloadPolicy moves shards of all three; DeepSpeed's gradients follow the optimizer where they are
    sharded.
    """
    if state == "weights":
        return 0 if plan.offload.offload_parameters == "none" else 1
    if plan.offload.offload_optimizer == "none":
        return 0
    if state == "optimizer":
        return plan.offload.optimizer_offload_fraction
    return 1 if plan.zero_stage >= training_runtime(plan.runtime).gradients_offloaded_from else 0


def staying(term: Term, share: Number) -> Term:
    """The part of a state that stays, of whose bytes `share` are offloaded."""
    if not hasattr(share, "ndim") and share in (0, 1):
        return Term.sum(term.name, unit="bytes") if share else term
    stays = Term.of("share that stays", f.share_that_stays, phi=share)
    return Term.sum(term.name, Term.product(Message("{term} that stay", term=term.name), "bytes", stays, term))


def leaving(term: Term, share: Number) -> Term:
    """The part of a state that is offloaded."""
    leaves = Term.of("share that leaves", f.share_that_leaves, phi=share)
    return Term.product(Message("offloaded {term}", term=term.name), "bytes", leaves, term)


class KeptTensors:
    """What the layers of a stage keep for backward on the accelerator, with those on their way in or out.

    Of the tensors that are offloaded the last two layers' are there when forward ends, one on its way out and one not
    yet; in backward those of one layer come back while the layer above is at work.
    """

    def __init__(self, rank: StageView):
        self.rank, self.plan, self.step = rank, rank.plan, rank.step
        self.is_on = self.plan.offload.offload_activations != "none"

    @cached_property
    def stays(self) -> Mapping[Block, Term]:
        """Of one layer of each kind what never leaves."""
        if not self.is_on:
            return self.step.kept
        return {block: self._left(block) for block in self.step.kept}

    @cached_property
    def leaves(self) -> dict[Block, Term]:
        """Of one layer of each kind what is offloaded."""
        return {block: self._leaving(block, kept) for block, kept in self.step.kept.items()}

    def _leaving(self, block: Block, kept: Term) -> Term:
        named = self.step.framework.offloaded_tensors(block)
        if named is None:
            return kept
        return Term.of("offloaded tensors of a layer", f.bytes_that_leave, M=kept.value, U=named.value)

    def _left(self, block: Block) -> Term:
        """A layer that is recomputed keeps less than the offloaded tensors name."""
        named = self.step.framework.offloaded_tensors(block)
        if named is None:
            return Term.sum("one layer", unit="bytes")
        return Term.of(
            "one layer, without what is offloaded", f.bytes_that_stay, M=self.step.kept[block].value, U=named.value
        )

    def passing(self, point: Point) -> list[Term]:
        """Tensors of layers on their way to the host or back."""
        if not self.is_on:
            return []
        held = self.rank.counts if point.everything else point.kept
        layers = sum(held.values())
        if not layers:
            return []
        one = Term.max("the largest layer", *(self.leaves[block] for block in held))
        count = Term.of("layers on their way", f.layers_on_rank, l=min(layers, 2 if point.everything else 1))
        return [Term.product("offloaded tensors on their way", "bytes", count, one)]
