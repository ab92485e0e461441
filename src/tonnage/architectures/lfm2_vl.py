"""LFM2-VL: SigLIP 2, four patches merged to one, in the first releases a norm, and two matrices.

Structure: transformers 5.23, models/lfm2_vl.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, linear, projected, tower
from tonnage.ops import Op


@architecture("Lfm2VlForConditionalGeneration", model_types=("lfm2_vl", "lfm2-vl"))
def lfm2_vl(c: Config) -> Model:
    text, vision = language_model(c, "lfm2"), tower(c, "siglip2_vision_model")
    inputs = vision.hidden_size * c.size("downsample_factor", default=2) ** 2
    inner, bias, name = (
        c.size("projector_hidden_size", default=2560),
        c.flag("projector_bias", default=True),
        "multi_modal_projector",
    )
    ops: tuple[Op, ...] = (
        linear(f"{name}.linear_1", inputs, inner, bias),
        linear(f"{name}.linear_2", inner, text.hidden_size, bias),
    )
    if c.flag("projector_use_layernorm", default=True):
        ops = (norm(f"{name}.layer_norm", inputs, "layer"), *ops)
    return joined(text, "lfm2_vl", projected(vision, *ops))
