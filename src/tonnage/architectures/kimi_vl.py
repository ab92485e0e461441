"""Kimi-VL, Kimi K2.5 to K2.7 and Kimi K3: MoonViT, four patches merged to one, two matrices and a norm.

Structure: transformers 5.23, models/kimi_k25; vllm-project/vllm vllm/model_executor/models/kimi_vl.py. The projector
ends in the text model's width. Kimi K3's (mm_projector_type patchmergerv2) has no biases and its norm behind: see
towers_kimi.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, linear, pair, projected, tower
from tonnage.ops import Op

PROJECTORS = ("patchmerger", "patchmergerv2")


@architecture("KimiVLForConditionalGeneration", model_types=("kimi_vl",))
def kimi_vl(c: Config) -> Model:
    return with_merger(c, "deepseek_v3")


@architecture("KimiK25ForConditionalGeneration", "Kimi_K25ForConditionalGeneration", model_types=("kimi_k25",))
def kimi_k25(c: Config) -> Model:
    return with_merger(c, "deepseek_v3")


@architecture("KimiK3ForConditionalGeneration", model_types=("kimi_k3",))
def kimi_k3(c: Config) -> Model:
    return with_merger(c, "kimi_linear")


def with_merger(c: Config, text_type: str) -> Model:
    text, vision = language_model(c, text_type), tower(c, "moonvit")
    section = c.section("vision_config").with_defaults({"merge_kernel_size": 2, "mm_projector_type": "patchmerger"})
    high, wide = pair(section, "merge_kernel_size")
    second = section.one_of("mm_projector_type", PROJECTORS) == "patchmergerv2"
    name, inputs = "multi_modal_projector", vision.hidden_size * high * wide
    ops: tuple[Op, ...] = (
        linear(f"{name}.linear_1", inputs, inputs, bias=not second),
        linear(f"{name}.linear_2", inputs, text.hidden_size, bias=not second),
    )
    if second:
        ops = (*ops, norm(f"{name}.post_norm", text.hidden_size))
    else:
        ops = (norm(f"{name}.pre_norm", vision.hidden_size, "layer"), *ops)
    return joined(text, "kimi_vl", projected(vision, *ops))
