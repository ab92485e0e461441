"""Unsloth in the walk: its loss by release, inputs of layers in the host's memory, and the buffers through which
they come back.
"""

from collections.abc import Sequence
from functools import lru_cache

from tonnage.architectures import Block, wiring
from tonnage.estimate.frameworks.base import FRAMEWORKS
from tonnage.estimate.frameworks.transformers import Transformers
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.layers.losses import FUSED, LOSSES
from tonnage.estimate.step.pipeline_layout import Release, release_of
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.views import RankView
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import GIB, counted
from tonnage.numerics.precisions import precision
from tonnage.runtimes.parts.fused import Unsloth as Layers
from tonnage.spec import TrainingPlan
from tonnage.tape import TOKEN, Code, Extent, Held, Layer, Setting, Tensor

NEWEST: Release = (2026, 10)
# unsloth/models/llama.py of 2024.8, 2024.10, 2024.11, 2024.12, 2025.2, 2025.5, 2025.8 and 2026.10 were read.
FUSED_LOSS: Release = (
    2024,
    11,
)  # no logits at all: first Apple's cut cross entropy, later unsloth_zoo's in parts, which is taken for both
BYTES_PER_LOGIT, MOST, PARTS_STEP = 16.0, 4 * GIB, 4  # fused_losses/cross_entropy_loss.py: get_chunk_size


class Unsloth(Transformers):
    """A run of Unsloth."""

    @classmethod
    def sizes_of_loss(cls, plan: TrainingPlan) -> tuple[str, ...]:
        return ("sequence_length", "micro_batch_size")

    @property
    def release(self) -> Release:
        return release_of(self.plan.runtime_version, "unsloth", NEWEST)

    def _runs_again(self, rank: RankView, point: Point | None) -> bool:
        """No run was measured that tells what its loss and its layers leave each other."""
        return False

    def loss_kind(self) -> tuple[str, float]:
        if self.release < FUSED_LOSS:
            return "unsloth", 1
        return "unsloth in parts", self._parts(self.tokens)

    def notes(self) -> list[str]:
        """unsloth_zoo, fused_losses/cross_entropy_loss.py: get_chunk_size gives 1 or a multiple of 4, so that memory
        falls where it steps up.
        """
        sequences = self.plan.micro_batch_size
        here, there = (self._parts(self.plan.sequence_length * count) for count in (sequences, sequences + 1))
        if self.release < FUSED_LOSS or here == there:
            return []
        return [
            (
                Message(
                    "Unsloth takes the loss in {here} here and in {there:,.0f} with one more sequence in the "
                    "micro-batch, each of them smaller: a larger micro-batch can need less.",
                    here=counted(here, "parts"),
                    there=there,
                )
            )
        ]

    def _parts(self, tokens: int) -> float:
        """The number of parts of the loss: one takes no more than half the memory that is free when the first loss
        begins.
        """
        model, plan, cluster = self.step.model, self.plan, self.step.cluster
        target = float(MOST)
        if cluster is not None:
            bits = precision(plan.tuning.base_weights).bits_per_weight if plan.tuning.base_weights else 16
            free = cluster.accelerator.memory.usable_bytes - model.num_parameters() * bits / 8
            target = max(min(target, free / 2), GIB / 2)
        exact = tokens * model.vocab_size * BYTES_PER_LOGIT / target
        return 1 if exact <= 1 else min(-(-exact // PARTS_STEP) * PARTS_STEP, tokens)

    def logits_held(self) -> float:
        return 0

    def layer(self, block: Block, masked: bool, hidden: int) -> Layer:
        if self.plan.recompute != "full":
            return super().layer(block, masked, hidden)
        return _offloaded(block, self.step.setting, hidden)

    def lasting(self, rank: RankView) -> list[Term]:
        """Where the inputs of layers arrive: two of them since they are buffers
        (unsloth_zoo/gradient_checkpointing.py: GPU_BUFFERS, _B).
        """
        if self.plan.recompute != "full" or self.release < FUSED_LOSS:
            return []
        return [self.step.sizes.term("buffers for inputs from the host", 2 * self.step.model.hidden_size, 2, TOKEN)]


@lru_cache(maxsize=1024)
def _offloaded(block: Block, setting: Setting, hidden: int) -> Layer:
    code = Layers(setting)
    return tapes.layer(
        code, lambda x: code.offloaded(lambda x: wiring.run(block, code, x), x), hidden, setting.types.parameter
    )


def _loss(code: Code, logits: Tensor) -> Tensor:
    """Unsloth's cross entropy writes its gradient over the logits; Accelerate's convert_outputs_to_fp32 copies them
    behind it, until the loss alone is left of the model's outputs.
    """
    rows = code.new(1, 4, logits.extent)
    storage, elements, width, extent = logits.storage, logits.elements, logits.width, logits.extent
    out = code.new(0, 4, extent)
    code.note("loss", [out], [logits], [logits, rows], lambda _: [Tensor(storage, elements, width, extent, None, True)])
    copied = code.like(logits, 4)
    code.mark()
    del copied
    return out


def _loss_in_parts(code: Code, x: Tensor, held: Sequence[Held], part: float) -> Tensor:
    """unsloth_fused_ce_loss, compiled: the logits of a part and their gradient, as narrow as they are; the head does
    not train.
    """
    gradient = code.like(x)
    logits = [code.new(part, code.types.compute, Extent("token", "gathered")) for _ in range(2)]
    code.mark()
    del logits
    saved = (gradient.storage, gradient.elements, gradient.width, gradient.extent, None, True)
    out = code.new(0, 4, x.extent)
    code.note("fused_cross_entropy", [out], [x], [gradient], lambda _: [Tensor(*saved)])
    return out


LOSSES["unsloth"] = _loss
FUSED["unsloth in parts"] = _loss_in_parts
FRAMEWORKS.add("unsloth", Unsloth)
