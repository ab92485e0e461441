"""LitGPT in the walk: its loss, and logits that have a name until the next step."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tonnage.estimate.frameworks.base import Framework
from tonnage.estimate.step.points import Point
from tonnage.kernel.term import Term
from tonnage.tape import Extent, Setting

if TYPE_CHECKING:
    from tonnage.estimate.step.stage import StageMemory


# Lightning, fabric/plugins/precision/bitsandbytes.py: quantised from fp16, so that it is made whole in fp16 and then cast
WHOLE = 4
PART = 128  # litgpt/finetune/lora.py: lm_head_chunk_size, in tokens of a sequence


class LitGPT(Framework):
    """A run of litgpt finetune or pretrain on one accelerator."""

    @property
    def adapter_precision(self) -> str:
        """Adapters are made as the layers that they stand beside."""
        return "fp32" if self.recipe.update_bytes == 4 else "bf16"

    def setting(self) -> Setting:
        made = super().setting()
        if made.adapters is None or not made.adapters.base:
            return made
        return replace(made, adapters=replace(made.adapters, base=WHOLE))

    @property
    def _head(self) -> float:
        return self.step.model.vocab_size * self.step.model.hidden_size

    @property
    def _casts_frozen_head(self) -> bool:
        """Autocast remembers its casts of weights that train (ATen, autocast_mode.cpp: cached_cast), so that a frozen head is cast by every
        part of the sequence, and each keeps its copy for backward."""
        return self.step.setting.adapters is not None and self.step.setting.types.autocast

    def temporary(self, rank: "StageMemory", point: Point) -> list[Term]:
        if point.everything and self.plan.base_weights:
            return [
                self.step.sizes.term(
                    "head made whole",
                    self._head,
                    WHOLE,
                    Extent("parameter", "vocab"),
                )
            ]
        if point.everything and self._casts_frozen_head:
            return [self.step.sizes.positions("head, cast for each part of the sequence", self._head / PART, 2)]
        if not point.head_made:
            return []
        return [self.step.sizes.term("logits of this step", self.step.model.vocab_size, 4, Extent("token", "gathered"))]
