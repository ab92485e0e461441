"""LitGPT in the walk: its loss, and logits that have a name until the next step."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tonnage.breakdown import Term
from tonnage.estimate._framework import Framework
from tonnage.estimate._points import Point
from tonnage.tape import Extent, Setting

if TYPE_CHECKING:
    from tonnage.estimate._stage import StageMemory


# Lightning, fabric/plugins/precision/bitsandbytes.py: quantised from fp16, so that it is made whole in fp16 and then cast
WHOLE = 4


class LitGPT(Framework):
    """A run of litgpt finetune or pretrain on one accelerator."""

    adapter_precision = "bf16"

    def setting(self) -> Setting:
        made = super().setting()
        if made.adapters is None or not made.adapters.base:
            return made
        return replace(made, adapters=replace(made.adapters, base=WHOLE))

    def temporary(self, rank: "StageMemory", point: Point) -> list[Term]:
        if point.everything and self.plan.base_weights:
            return [
                self.step.sizes.term(
                    "head made whole",
                    self.step.model.vocab_size * self.step.model.hidden_size,
                    WHOLE,
                    Extent("parameter", "vocab"),
                )
            ]
        if not point.head_made:
            return []
        return [self.step.sizes.term("logits of this step", self.step.model.vocab_size, 4, Extent("token", "gathered"))]
