"""LitGPT in the walk: its loss, and logits that have a name until the next step."""

from collections.abc import Sequence

from msgspec.structs import replace

from tonnage.estimate.frameworks.base import FRAMEWORKS, Framework
from tonnage.estimate.layers.losses import FUSED
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.views import RankView
from tonnage.kernel.term import Term
from tonnage.tape import Code, Extent, Held, Setting, Tensor

# Lightning, fabric/plugins/precision/bitsandbytes.py: quantised from fp16, so that it is made whole in fp16 and then
# cast
WHOLE = 4
PART = 128  # litgpt/finetune/lora.py: lm_head_chunk_size, in tokens of a sequence


class LitGPT(Framework):
    """A run of litgpt finetune or pretrain on one accelerator."""

    @property
    def adapter_precision(self) -> str:
        """Adapters are made as the layers that they stand beside."""
        return "fp32" if self.recipe.update_bytes == 4 else "bf16"

    def setting(self) -> Setting:
        setting = super().setting()
        if setting.adapters is None or not setting.adapters.base:
            return setting
        return replace(setting, adapters=replace(setting.adapters, base=WHOLE, copies=False))

    @property
    def _head(self) -> float:
        return self.step.model.vocab_size * self.step.model.hidden_size

    @property
    def _casts_frozen_head(self) -> bool:
        """Autocast remembers its casts of weights that train (ATen, autocast_mode.cpp: cached_cast), so that a
        frozen head is cast by every part of the sequence, and each keeps its copy for backward.
        """
        return self.step.setting.adapters is not None and self.step.setting.types.autocast

    def temporary(self, rank: RankView, point: Point) -> list[Term]:
        if point.everything and self.plan.tuning.base_weights:
            return [self.step.sizes.term("head made whole", self._head, WHOLE, Extent("parameter", "vocab"))]
        if point.everything and self._casts_frozen_head:
            return [self.step.sizes.positions("head, cast for each part of the sequence", self._head / PART, 2)]
        if not point.head_made:
            return []
        return [self.step.sizes.term("logits of this step", self.step.model.vocab_size, 4, Extent("token", "gathered"))]


def chunked_loss(code: Code, x: Tensor, held: Sequence[Held], part: float) -> Tensor:
    """LitGPT's, on 128 tokens at a time: Fabric makes the logits fp32 (HalfPrecision.convert_output), in a list that
    has a name until the next step; each part keeps its logarithms, and what backward adds is one part's.
    """
    weights = [code.weight(*weight[:3]) for weight in held]
    shapes = [(weight.elements, weight.width, weight.extent) if weight.slot is not None else None for weight in weights]
    extent, shape = Extent("token", "gathered"), (x.elements, x.width, x.extent)
    narrow, wide = code.new(part, code.types.compute, extent), code.new(part, 4, extent)
    code.mark()
    del narrow
    logarithms = code.new(part, 4, extent)
    code.mark()
    out = code.new(0, 4, x.extent)
    saved = [x if any(shapes) else None, wide, logarithms]
    code.note(
        "chunked_cross_entropy",
        [out],
        [x, *weights],
        saved,
        lambda _: [code.new(*shape), *(code.new(*weight) if weight else None for weight in shapes)],
    )
    return out


FUSED["litgpt"] = chunked_loss
FRAMEWORKS.add("litgpt", LitGPT)
