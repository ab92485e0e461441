"""InternVL 1 to 3.5: InternViT, four patches merged to one by pixel shuffle, a norm and two matrices.

Structure: transformers 5.23, models/internvl; OpenGVLab's remote code (InternVLChatModel) has the same shapes under
other names.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, projected, tower
from tonnage.architectures.llava import two_layers
from tonnage.kernel.errors import InvalidInput


@architecture("InternVLForConditionalGeneration", model_types=("internvl",))
def internvl(c: Config) -> Model:
    return with_pixel_shuffle(c, "qwen2", "internvl_vision", "multi_modal_projector")


@architecture("InternVLChatModel", model_types=("internvl_chat",))
def internvl_chat(c: Config) -> Model:
    return with_pixel_shuffle(c, "internlm2", "intern_vit_6b", "mlp1")


def with_pixel_shuffle(c: Config, text_type: str, vision_type: str, name: str) -> Model:
    text, vision = language_model(c, text_type), tower(c, vision_type)
    ratio = c.number("downsample_ratio", default=0.5)
    if not 0 < ratio <= 1:
        raise InvalidInput(
            "{where}: downsample_ratio must be above 0 and at most 1. Got {ratio}.", where=c.where, ratio=ratio
        )
    inputs = vision.hidden_size * int(1 / ratio) ** 2
    ops = (norm(f"{name}.layer_norm", inputs, "layer"), *two_layers(name, inputs, text.hidden_size))
    return joined(text, "internvl", projected(vision, *ops))
