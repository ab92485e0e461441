"""torchtune in the walk: on one accelerator or on FSDP2, with a loss in parts and an optimizer that may step in
backward.
"""

from msgspec.structs import replace

from tonnage.estimate.frameworks.base import FRAMEWORKS
from tonnage.estimate.frameworks.fsdp2 import Compiled, Fsdp2
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import Stage, first_of
from tonnage.estimate.step.views import RankView, StepView
from tonnage.formulas import memory as f
from tonnage.kernel.formula import ceil_div
from tonnage.kernel.term import Term
from tonnage.spec import TrainingPlan
from tonnage.tape import Extent, Layer, Setting

MASK_BLOCK = 128  # tokens, create_block_mask's own


class Recipe(Compiled):
    """What a recipe on one accelerator and one on several have in common."""

    @property
    def adapter_precision(self) -> str:
        return "bf16"

    @property
    def adapter_width(self) -> float:
        """torchtune makes adapters in the model's own type (modules/peft/lora.py)."""
        return self.recipe.compute_bytes

    @classmethod
    def sizes_of_loss(cls, plan: TrainingPlan) -> tuple[str, ...]:
        return ("sequence_length",) if plan.loss == "chunked" else ()

    @classmethod
    def for_step(cls, step: StepView) -> "Recipe":
        """The recipe for one accelerator, or the one for several, with FSDP2."""
        return Sharded(step) if step.plan.zero_stage else Alone(step)

    def __init__(self, step: StepView):
        super().__init__(step)
        self.keeps_gradients = not self.plan.optimizer_in_backward

    def setting(self) -> Setting:
        setting = super().setting()
        # flex attention, which keeps what flash keeps (attention_utils.py, from compute capability 7.5 on)
        attention = "flash" if self.plan.packing else setting.attention
        return replace(setting, attention=attention)

    def outside(self, rank: RankView) -> list[Term]:
        """For packed rows a BlockMask: which blocks of keys each block of queries sees, and the other way round,
        whole and in part, and the sequence of each token (packed_block_causal_mask; torch,
        nn/attention/flex_attention.py).
        """
        if not self.plan.packing:
            return super().outside(rank)
        pairs, tokens = Extent("pair", "gathered"), Extent("token", "gathered")
        return [
            self.step.sizes.term("blocks of the mask", 4 / MASK_BLOCK**2, 4, pairs),
            self.step.sizes.term("sequence of each token", 1, 8, tokens),
        ]

    def loss(self, stage: Stage) -> Layer | None:
        if not (stage.is_last and stage.after):
            return None
        own = self.step.setting.own
        compiled = own is not None and own.compiled
        chunked = "output-chunks-compiled" if compiled else "output-chunks"
        kind = chunked if self.plan.loss == "chunked" else "compiled" if compiled else "cross-entropy"
        return tapes.loss_layer(
            stage.after, self.step.setting, self.step.model.hidden_size, kind, self._parts(), self.runtime.logits_split
        )

    def _parts(self) -> float:
        """All tokens of a sequence over those of the largest part that torch.chunk makes; of several plans in an
        array the first one's.
        """
        tokens = first_of(self.plan.sequence_length)
        return float(tokens / ceil_div(tokens, self.runtime.loss_chunks)) if self.plan.loss == "chunked" else 1

    def gathered_to_save(self, parameters: Term) -> Term:
        """All weights, which rank 0 gathers (gather_cpu_state_dict)."""
        return copies("gathered weights, on the node of rank 0", self.step.setting.types.parameter, parameters)

    def head_addend(self, rank: RankView, point: Point) -> list[Term]:
        """Autograd sums the head's gradients of the parts before it hands them on: the sum, and the gradient of one
        part.
        """
        if point.phase != "loss" or self.plan.loss != "chunked" or not self.step.trains_all or not rank.stage.after:
            return []
        return [copies("gradient of the head, of another part of the logits", self.recipe.compute_bytes, rank.head)]


class Alone(Recipe):
    """The recipe for one accelerator."""

    def __init__(self, step: StepView):
        super().__init__(step)
        if not self.keeps_gradients:
            self.unit_gradient_width = self.recipe.compute_bytes

    def gradients(self, rank: RankView, point: Point) -> Term | None:
        return None if self.keeps_gradients else Term.sum("gradients", unit="bytes")

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        terms = self.head_addend(rank, point)
        if self.unit_gradient_width:
            here = Term.of("current unit", f.whole_parameters, N=rank.sizes.made(point.bytes), z=1)
            terms.append(copies("gradients until the optimizer has taken its step", self.unit_gradient_width, here))
        return terms


class Sharded(Recipe, Fsdp2):
    """Several accelerators, on FSDP2."""

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        return [*Fsdp2.temporary(self, rank, point), *self.head_addend(rank, point)]


FRAMEWORKS.add("torchtune", Recipe)
