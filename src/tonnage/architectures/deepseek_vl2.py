"""DeepSeek-VL2: SigLIP, two by two patches joined, two matrices, and a DeepSeekMoE language model.

Structure: deepseek-ai/DeepSeek-VL2 modeling_deepseek_vl_v2.py and siglip_vit.py, as vllm-project/vllm
vllm/model_executor/models/deepseek_vl2.py reads them. The tower's pooling head is stored and not used.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._registry import MODEL_TYPES, architecture, find
from tonnage.architectures._towers import joined, linear, projected, table, tower

SIGLIP = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "image_size": 384,
    "patch_size": 14,
    "vision_use_head": True,
}
SHARED = {"tie_word_embeddings": False}


@architecture("DeepseekVLV2ForCausalLM", model_types=("deepseek_vl_v2",))
def deepseek_vl2(c: Config) -> Model:
    section = c.section("language_config")
    kind = "deepseek_v2" if section.flag("use_mla", default=True) else "deepseek"
    fields = {name: value for name, value in section.fields.items() if name != "architectures"}
    text = find(MODEL_TYPES, kind)(section.with_fields({**SHARED, **fields, "model_type": kind}))
    vision = tower(c.with_fields({"vision_config": SIGLIP}), "siglip_vision_model")
    h = text.hidden_size
    ops = (
        linear("projector.layers.0", 4 * vision.hidden_size, h),
        linear("projector.layers.2", h, h),
        table("image_newline and view_seperator", 2, h),
    )
    return joined(text, "deepseek_vl2", projected(vision, *ops))
