"""Which class of models makes tokens of an image by which rule."""

from collections.abc import Mapping

from tonnage.architectures import Model
from tonnage.estimate.media.images import (
    Rule,
    fixed,
    gemma4,
    gemma4_unified,
    internvl,
    kimi,
    llama4,
    llava_next,
    merged_patches,
    mllama,
    phi3_vision,
    phi4_multimodal,
    pixtral,
    section,
)
from tonnage.estimate.media.tiles import (
    aya_vision,
    cohere2_vision,
    deepseek_vl2,
    idefics2,
    idefics3,
    lfm2_vl,
    minicpm_v,
    molmo,
)

IDEFICS3_WORDS = 128_259  # tokens of Idefics3-8B-Llama3, which has none for rows and columns of tiles
QWEN2 = merged_patches(14, 56 * 56, 12_845_056)
QWEN3 = merged_patches(16, 65_536, 16_777_216)
QWEN3_OMNI = merged_patches(16, 56 * 56, 12_845_056)
GLM4V = merged_patches(14, 112 * 112, 9_633_792, frames=2)
KIMI_K2 = kimi(16_384, 512)

#: By the class that a checkpoint names.
IMAGE_RULES: Mapping[str, Rule] = {
    "Qwen2VLForConditionalGeneration": QWEN2,
    "Qwen2_5_VLForConditionalGeneration": QWEN2,
    "Qwen2_5OmniModel": QWEN2,
    "Qwen2_5OmniForConditionalGeneration": QWEN2,
    "Qwen2_5OmniThinkerForConditionalGeneration": QWEN2,
    "Qwen3VLForConditionalGeneration": QWEN3,
    "Qwen3VLMoeForConditionalGeneration": QWEN3,
    "Qwen3_5ForConditionalGeneration": QWEN3,
    "Qwen3_5MoeForConditionalGeneration": QWEN3,
    "Qwen3OmniMoeForConditionalGeneration": QWEN3_OMNI,
    "Qwen3OmniMoeThinkerForConditionalGeneration": QWEN3_OMNI,
    "Glm4vForConditionalGeneration": GLM4V,
    "Glm46VForConditionalGeneration": GLM4V,
    "Glm4vMoeForConditionalGeneration": GLM4V,
    "KimiVLForConditionalGeneration": kimi(4096, 512),
    "KimiK25ForConditionalGeneration": KIMI_K2,
    "Kimi_K25ForConditionalGeneration": KIMI_K2,
    "PixtralForConditionalGeneration": pixtral,
    "LlavaForConditionalGeneration": fixed("", 0, 1, 336, 14),
    "Mistral3ForConditionalGeneration": pixtral,
    "Gemma3ForConditionalGeneration": fixed("mm_tokens_per_image", 256, 0, 896, 14),
    "PaliGemmaForConditionalGeneration": fixed("", 0, 0, 224, 14),
    "AriaForConditionalGeneration": fixed("", 256, 0, 980, 14),  # split_image is off: one tile of 980 pixels
    "Idefics2ForConditionalGeneration": idefics2,
    "Idefics3ForConditionalGeneration": idefics3,
    "SmolVLMForConditionalGeneration": idefics3,
    "AyaVisionForConditionalGeneration": aya_vision,
    "Cohere2VisionForConditionalGeneration": cohere2_vision,
    "Lfm2VlForConditionalGeneration": lfm2_vl,
    "MolmoForCausalLM": molmo,
    "MiniCPMV": minicpm_v,
    "DeepseekVLV2ForCausalLM": deepseek_vl2,
    "Gemma3nForConditionalGeneration": fixed("vision_soft_tokens_per_image", 256, 0, 768, 16),
    "Gemma4ForConditionalGeneration": gemma4,
    "Gemma4UnifiedForConditionalGeneration": gemma4_unified,
    "InternVLForConditionalGeneration": internvl,
    "InternVLChatModel": internvl,
    "Llama4ForConditionalGeneration": llama4,
    "MllamaForConditionalGeneration": mllama,
    "LlavaNextForConditionalGeneration": llava_next(336, 14, 1),
    "LlavaOnevisionForConditionalGeneration": llava_next(384, 14, 0, 9),
    "Phi3VForCausalLM": phi3_vision,
    "Phi4MultimodalForCausalLM": phi4_multimodal,
    "Phi4MMForCausalLM": phi4_multimodal,
    "MiniMaxM3SparseForConditionalGeneration": merged_patches(14, 4 * 28 * 28, 451_584),
}


def image_rule(model: Model) -> Rule | None:
    """The rule of this model's processor; None where it is not described."""
    if model.architecture == "LlavaForConditionalGeneration":
        kind = section(model, "vision_config").get("model_type")
        return pixtral if kind == "pixtral" else IMAGE_RULES[model.architecture]
    if model.architecture.startswith("Idefics3") and section(model, "text_config").get("vocab_size") == IDEFICS3_WORDS:
        return None  # its marks of rows and columns are text, whose tokens no config says
    return IMAGE_RULES.get(model.architecture)
