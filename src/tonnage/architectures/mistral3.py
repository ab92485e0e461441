"""Mistral Small 3.1 and later, Ministral 3 and Devstral 2: Pixtral's tower, four patches merged, two matrices.

Structure: transformers 5.23, models/mistral3. The class's tie_word_embeddings is true by default, yet the released
checkpoints of Mistral Small hold a head of their own, and their text_config's class unties: so does tonnage where
both leave it out.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, linear, projected, tower
from tonnage.architectures.llava import feature_layers, two_layers


@architecture("Mistral3ForConditionalGeneration", model_types=("mistral3",))
def mistral3(c: Config) -> Model:
    text, vision = language_model(c, "mistral"), tower(c, "pixtral")
    width = vision.hidden_size
    merged = width * c.size("spatial_merge_size", default=2) ** 2
    name, bias = "multi_modal_projector", c.flag("multimodal_projector_bias", default=False)
    ops = (
        norm(f"{name}.norm", width),
        linear(f"{name}.patch_merger.merging_layer", merged, width, bias=False),
        *two_layers(name, feature_layers(c) * width, text.hidden_size, bias),
    )
    return joined(text, "mistral3", projected(vision, *ops))
