"""LitGPT in the walk: its loss, and logits that have a name until the next step."""

from typing import TYPE_CHECKING

from tonnage.breakdown import Term
from tonnage.estimate._framework import Framework
from tonnage.estimate._points import Point
from tonnage.tape import Extent

if TYPE_CHECKING:
    from tonnage.estimate._stage import StageMemory


class LitGPT(Framework):
    """A run of litgpt finetune or pretrain on one accelerator."""

    def temporary(self, rank: "StageMemory", point: Point) -> list[Term]:
        if not point.head_made:
            return []
        return [self.step.sizes.term("logits of this step", self.step.model.vocab_size, 4, Extent("token", "gathered"))]
