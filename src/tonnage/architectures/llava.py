"""LLaVA and its successors, VipLLaVA, DeepSeek-VL, Phi-3.5-vision, and Pixtral as LLaVA: a tower, two matrices.

Structure: transformers 5.23, models/{llava,llava_next,llava_next_video,llava_onevision,vipllava,deepseek_vl};
microsoft/Phi-3.5-vision-instruct modeling_phi3_v.py, whose tower is openai/clip-vit-large-patch14-336 and is not in
its config.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, linear, projected, tower
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.ops import Op, Parameter

CLIP_LARGE = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}


@architecture("LlavaForConditionalGeneration", model_types=("llava",))
def llava(c: Config) -> Model:
    return with_projector(c, "llama", "clip_vision_model")


@architecture(
    "LlavaNextForConditionalGeneration",
    "LlavaNextVideoForConditionalGeneration",
    model_types=("llava_next", "llava_next_video"),
)
def llava_next(c: Config) -> Model:
    """LLaVA-NeXT: the tiles of an image form rows, and a learned vector ends each row."""
    return with_projector(c, "llama", "clip_vision_model", newline=True)


@architecture("LlavaOnevisionForConditionalGeneration", model_types=("llava_onevision",))
def llava_onevision(c: Config) -> Model:
    return with_projector(c, "qwen2", "siglip_vision_model", newline=True)


@architecture("VipLlavaForConditionalGeneration", model_types=("vipllava",))
def vipllava(c: Config) -> Model:
    """The projector sees five layers of the tower, after a norm."""
    c = c.with_defaults({"vision_feature_layer": [-2, -5, -8, -11, 6]})
    text, vision = language_model(c, "llama"), tower(c, "clip_vision_model")
    inputs = feature_layers(c) * vision.hidden_size
    name = "multi_modal_projector"
    ops = (norm(f"{name}.projector_layernorm", inputs, "layer"), *two_layers(name, inputs, text.hidden_size))
    return joined(text, "llava", projected(vision, *ops))


def with_projector(c: Config, text_type: str, vision_type: str, newline: bool = False) -> Model:
    text, vision = language_model(c, text_type), tower(c, vision_type)
    bias = c.flag("multimodal_projector_bias", default=True)
    ops = two_layers("multi_modal_projector", feature_layers(c) * vision.hidden_size, text.hidden_size, bias)
    if newline:
        ops += (Parameter(name="image_newline", elements=text.hidden_size, part="vision"),)
    return joined(text, "llava", projected(vision, *ops))


def feature_layers(c: Config) -> int:
    """Number of the tower's layers that the projector reads: the field holds one layer's number, or a list."""
    layer_field = c.raw("vision_feature_layer")
    if layer_field is None or isinstance(layer_field, list | tuple):
        layers = c.items("vision_feature_layer", default=[-2])
        if not 1 <= len(layers) <= 1024:
            raise InvalidInput(
                "{where}: vision_feature_layer must name at least one layer. Got {layers}.",
                where=c.where,
                layers=shown(layers),
            )
        return len(layers)
    return 1


def two_layers(name: str, inputs: int, outputs: int, bias: bool = True) -> tuple[Op, ...]:
    """The usual projector."""
    return linear(f"{name}.linear_1", inputs, outputs, bias), linear(f"{name}.linear_2", outputs, outputs, bias)


@architecture("DeepseekVLForConditionalGeneration", model_types=("deepseek_vl",))
def deepseek_vl(c: Config) -> Model:
    text, vision = language_model(c, "llama"), tower(c, "siglip_vision_model")
    return joined(text, "llava", projected(vision, *two_layers("aligner", vision.hidden_size, text.hidden_size)))


@architecture("Phi3VForCausalLM", model_types=("phi3_v",))
def phi3_vision(c: Config) -> Model:
    """The projector joins four patches; learned vectors end rows and separate image and tiles."""
    text = language_model(c.with_fields({**c.fields, "architectures": ["Phi3ForCausalLM"]}), "phi3")
    vision = tower(Config({"vision_config": CLIP_LARGE}, c.where, c.assumed, c.path), "clip_vision_model")
    merged = 4 * vision.hidden_size
    marks = tuple(Parameter(name=name, elements=merged, part="vision") for name in ("glb_GN", "sub_GN"))
    return joined(text, "phi3_v", projected(vision, *two_layers("img_projection", merged, text.hidden_size), *marks))
