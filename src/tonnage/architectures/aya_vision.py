"""Aya Vision and Command A Vision: SigLIP, four patches merged to one, a gated projector.

Structure: transformers 5.23, models/{aya_vision,cohere2_vision}.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, linear, projected, tower
from tonnage.ops import Op


@architecture("AyaVisionForConditionalGeneration", model_types=("aya_vision",))
def aya_vision(c: Config) -> Model:
    return with_gate(c, c.size("alignment_intermediate_size", default=None), normed=True)


@architecture("Cohere2VisionForConditionalGeneration", model_types=("cohere2_vision",))
def command_vision(c: Config) -> Model:
    return with_gate(c, c.size("alignment_intermediate_size", default=36_864), normed=False)


def with_gate(c: Config, inner: int | None, normed: bool) -> Model:
    """A gated projector: the first matrix makes values and their gates, so the second has half as many inputs."""
    text, vision = language_model(c, "cohere2"), tower(c, "siglip_vision_model")
    inputs = vision.hidden_size * c.size("downsample_factor", default=2) ** 2
    inner, name = inner or text.hidden_size, "multi_modal_projector"
    ops: tuple[Op, ...] = (
        linear(f"{name}.linear_1", inputs, inner),
        linear(f"{name}.linear_2", inner // 2, text.hidden_size),
    )
    if normed:
        ops = (norm(f"{name}.layernorm", inputs, "layer"), *ops)
    return joined(text, "aya_vision", projected(vision, *ops))
