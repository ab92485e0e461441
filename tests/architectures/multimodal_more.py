"""More of multimodal_configs.py: all but LLaVA, Gemma and Llama, and every case together as CASES."""
# fmt: off

from typing import Any

from architectures.multimodal_configs import GEMMA, LLAMA, LLAVA, Case, Fields, every, siglip, sizes, vit, wrapper

QWEN2_EYE = {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "patch_size": 14,
             "spatial_merge_size": 2,
             "spatial_patch_size": 14, "temporal_patch_size": 2}
QWEN25_EYE = {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3,
              "patch_size": 14,
              "spatial_merge_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
              "temporal_patch_size": 2}
QWEN3_EYE = {"in_channels": 3, "num_heads": 16, "num_position_embeddings": 2304, "patch_size": 16,
             "spatial_merge_size": 2,
             "temporal_patch_size": 2}
WIDE = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304}
SMALL = {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096}


def qwen2(kind: str, model_type: str, eye: Fields, vocabulary: int, *text: int, tied: bool = False) -> Fields:
    """The first releases' files are flat: the text model's fields beside vision_config."""
    return wrapper(kind, model_type, vocab_size=vocabulary, tie_word_embeddings=tied, use_sliding_window=False,
                   max_window_layers=28,
                   sliding_window=32_768, vision_config=eye, **sizes(*text))


def qwen2_vl(width: int, *more: Any, **options: Any) -> Fields:
    return qwen2("Qwen2VLForConditionalGeneration", "qwen2_vl", QWEN2_EYE | {"hidden_size": width}, *more, **options)


def qwen25_vl(width: int, *more: Any, **options: Any) -> Fields:
    return qwen2("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", QWEN25_EYE | {"out_hidden_size": width}, *more,
                 **options)


def qwen3_vl(eye: Fields, deepstack: list[int], *text: int, tied: bool = False, **experts: Any) -> Fields:
    name, model_type = ("Qwen3VLMoe", "qwen3_vl_moe") if experts else ("Qwen3VL", "qwen3_vl")
    inner = {"model_type": f"{model_type}_text", "head_dim": 128, "vocab_size": 151_936, **sizes(*text), **experts}
    return wrapper(f"{name}ForConditionalGeneration", model_type, text_config=inner, tie_word_embeddings=tied,
                   vision_config=QWEN3_EYE | eye | {"model_type": model_type, "out_hidden_size": text[0],
                                                    "deepstack_visual_indexes": deepstack})


DELTA = {"linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
         "linear_value_head_dim": 128, "head_dim": 256,
         "attn_output_gate": True, "vocab_size": 248_320, "mtp_num_hidden_layers": 1, "full_attention_interval": 4}


def qwen3_5(values: int, hidden: int, layers: int, heads: int, groups: int, **feed: Any) -> Fields:
    name, model_type = ("Qwen3_5Moe", "qwen3_5_moe") if "num_experts" in feed else ("Qwen3_5", "qwen3_5")
    inner = {"model_type": f"{model_type}_text", "linear_num_value_heads": values, "hidden_size": hidden,
             "num_hidden_layers": layers,
             "num_attention_heads": heads, "num_key_value_heads": groups, **DELTA, **feed}
    return wrapper(f"{name}ForConditionalGeneration", model_type, text_config=inner, tie_word_embeddings=False,
                   vision_config=QWEN3_EYE | WIDE | {"model_type": model_type, "out_hidden_size": hidden,
                                                     "deepstack_visual_indexes": []})


def moe(experts: int, chosen: int, width: int, **more: Any) -> Fields:
    return {"num_experts": experts, "num_experts_per_tok": chosen, "moe_intermediate_size": width, **more}


SPARSE = {"mlp_only_layers": [], "decoder_sparse_step": 1}
QWEN = {
    "Qwen/Qwen2-VL-2B-Instruct": Case(qwen2_vl(1536, 151_936, 1536, 8960, 28, 12, 2, tied=True), 2_208_985_600, True),
    "Qwen/Qwen2-VL-7B-Instruct": Case(qwen2_vl(3584, 152_064, 3584, 18_944, 28, 28, 4), 8_291_375_616, True),
    "Qwen/Qwen2-VL-72B-Instruct": Case(qwen2_vl(8192, 152_064, 8192, 29_568, 80, 64, 8), 73_405_560_320, True),
    "Qwen/Qwen2.5-VL-3B-Instruct": Case(qwen25_vl(2048, 151_936, 2048, 11_008, 36, 16, 2, tied=True), 3_754_622_976,
                                        True),
    "Qwen/Qwen2.5-VL-7B-Instruct": Case(qwen25_vl(3584, 152_064, 3584, 18_944, 28, 28, 4), 8_292_166_656, True),
    "Qwen/Qwen3-VL-2B-Instruct": Case(qwen3_vl(SMALL, [5, 11, 17], 2048, 6144, 28, 16, 8, tied=True), 2_127_532_032),
    "Qwen/Qwen3-VL-32B-Instruct": Case(qwen3_vl(WIDE, [8, 16, 24], 5120, 25_600, 64, 64, 8), 33_357_390_064),
    "Qwen/Qwen3-VL-30B-A3B-Instruct": Case(
        qwen3_vl(WIDE, [8, 16, 24], 2048, 6144, 48, 32, 4, **moe(128, 8, 768), **SPARSE), 31_070_754_032),
    "Qwen/Qwen3-VL-235B-A22B-Instruct": Case(
        qwen3_vl(WIDE, [8, 16, 24], 4096, 12_288, 94, 64, 4, **moe(128, 8, 1536), **SPARSE), 235_670_022_896),
    "Qwen/Qwen3.5-27B": Case(qwen3_5(48, 5120, 64, 24, 4, intermediate_size=17_408), 27_356_728_560),
    "Qwen/Qwen3.5-35B-A3B": Case(qwen3_5(32, 2048, 40, 16, 2, **moe(256, 8, 512, shared_expert_intermediate_size=512)),
                                 35_107_181_936),
    "Qwen/Qwen3.5-397B-A17B": Case(
        qwen3_5(64, 4096, 60, 32, 2, **moe(512, 10, 1024, shared_expert_intermediate_size=1024)), 396_802_360_816),
    "LGAI-EXAONE/EXAONE-4.5-33B": Case(
        wrapper("Exaone4_5_ForConditionalGeneration", "exaone4_5", tie_word_embeddings=False,
                text_config={"architectures": ["Exaone4ForCausalLM"], "model_type": "exaone4_5_text",
                             "vocab_size": 153_600, "sliding_window": 4096, "sliding_window_pattern": "LLLG", "layer_types": every(64, 4),
                             "num_nextn_predict_layers": 1, **sizes(5120, 27_392, 64, 40, 8)},
                vision_config={"model_type": "exaone4_5_vision", "depth": 28, "hidden_size": 2048,
                               "intermediate_size": 5120, "num_heads": 32,
                               "num_key_value_heads": 8, "out_hidden_size": 5120,
                               "fullatt_block_indexes": [6, 13, 20, 27], "window_size": 112,
                               "patch_size": 14}), 33_813_987_328),
}

INTERNVIT_300M = vit("intern_vit_6b", 1024, 4096, 24, 16, 448, 14, norm_type="layer_norm", qkv_bias=True,
                     qk_normalization=False)
INTERNVIT_6B = vit("intern_vit_6b", 3200, 12_800, 45, 25, 448, 14, norm_type="rms_norm", qkv_bias=False,
                   qk_normalization=True)


def internvl(kind: str, vocabulary: int, eye: Fields, *text: int) -> Fields:
    inner = {"architectures": [kind], "model_type": "qwen2" if kind == "Qwen2ForCausalLM" else "internlm2",
             "vocab_size": vocabulary,
             "tie_word_embeddings": False, **sizes(*text)}
    return wrapper("InternVLChatModel", "internvl_chat", downsample_ratio=0.5, llm_config=inner, vision_config=eye)


def internvl_hf(*text: int) -> Fields:
    eye = vit("internvl_vision", 1024, 4096, 24, 16, 448, 14, attention_bias=True) | {"image_size": [448, 448],
                                                                                      "patch_size": [14, 14]}
    inner = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151_674, **sizes(*text)}
    return wrapper("InternVLForConditionalGeneration", "internvl", downsample_ratio=0.5, text_config=inner,
                   vision_config=eye,
                   tie_word_embeddings=False)


LM2, Q2 = ("InternLM2ForCausalLM", 92_553), ("Qwen2ForCausalLM", 151_674)
INTERNVL = {
    "OpenGVLab/InternVL2_5-1B": Case(internvl(*Q2, INTERNVIT_300M, 896, 4864, 24, 14, 2), 938_193_024, True),
    "OpenGVLab/InternVL2_5-2B": Case(internvl(*LM2, INTERNVIT_300M, 2048, 8192, 24, 16, 8), 2_205_754_368, True),
    "OpenGVLab/InternVL2_5-4B": Case(internvl(*Q2, INTERNVIT_300M, 2048, 11_008, 36, 16, 2), 3_712_637_952, True),
    "OpenGVLab/InternVL2_5-8B": Case(internvl(*LM2, INTERNVIT_300M, 4096, 14_336, 32, 32, 8), 8_075_365_376, True),
    "OpenGVLab/InternVL2_5-26B": Case(internvl(*LM2, INTERNVIT_6B, 6144, 16_384, 48, 48, 8), 25_514_186_112, True),
    "OpenGVLab/InternVL2_5-38B": Case(internvl(*Q2, INTERNVIT_6B, 5120, 27_648, 64, 40, 8), 38_388_164_992, True),
    "OpenGVLab/InternVL2_5-78B": Case(internvl(*Q2, INTERNVIT_6B, 8192, 29_568, 80, 64, 8), 78_408_318_336, True),
    "OpenGVLab/InternVL3-1B-hf": Case(internvl_hf(896, 4864, 24, 14, 2), 938_193_024, True),
    "OpenGVLab/InternVL3-8B-hf": Case(internvl_hf(3584, 18_944, 28, 28, 4), 7_944_373_760),
}


def idefics3(eye: Fields, scale: int, **text: Any) -> Fields:
    return wrapper("Idefics3ForConditionalGeneration", "idefics3", scale_factor=scale, tie_word_embeddings=False,
                   vision_config=eye,
                   text_config={"model_type": "llama", **text})


SMOL_EYE = vit("idefics3", 768, 3072, 12, 12, 512, 16)
IDEFICS = {
    "HuggingFaceTB/SmolVLM-256M-Instruct": Case(
        idefics3(SMOL_EYE, 4, head_dim=64, vocab_size=49_280, **sizes(576, 1536, 30, 9, 3)), 256_484_928, True),
    "HuggingFaceTB/SmolVLM-500M-Instruct": Case(
        idefics3(SMOL_EYE, 4, head_dim=64, vocab_size=49_280, **sizes(960, 2560, 32, 15, 5)), 507_482_304),
    "HuggingFaceM4/Idefics3-8B-Llama3": Case(
        idefics3(vit("idefics3", 1152, 4304, 27, 16, 364, 14), 2, vocab_size=128_259,
                 **sizes(4096, 14_336, 32, 32, 8)), 8_462_086_384),
    "HuggingFaceM4/idefics2-8b": Case(
        wrapper("Idefics2ForConditionalGeneration", "idefics2", tie_word_embeddings=False,
                perceiver_config={"model_type": "idefics2_perceiver"},
                text_config={"model_type": "mistral", "max_position_embeddings": 32_768, "vocab_size": 32_003},
                vision_config=vit("idefics2", 1152, 4304, 27, 16, 980, 14)), 8_402_768_112),
}

PIXTRAL = vit("pixtral", 1024, 4096, 24, 16, 1540, 14, head_dim=64)


def mistral3(model_type: str, **text: Any) -> Fields:
    inner = {"model_type": model_type, "head_dim": 128, "vocab_size": 131_072, "sliding_window": None, **text}
    return wrapper("Mistral3ForConditionalGeneration", "mistral3", text_config=inner, vision_config=PIXTRAL,
                   multimodal_projector_bias=False,
                   spatial_merge_size=2, vision_feature_layer=-1)


MISTRAL = {
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": Case(mistral3("mistral", **sizes(5120, 32_768, 40, 32, 8)),
                                                          24_011_361_280, True),
    "mistralai/Devstral-Small-2-24B-Instruct-2512": Case(
        mistral3("ministral3", **sizes(5120, 32_768, 40, 32, 8)) | {"tie_word_embeddings": False}, 24_011_361_280),
    "mistral-community/pixtral-12b": Case(
        wrapper("LlavaForConditionalGeneration", "llava", vision_feature_layer=-1, tie_word_embeddings=False,
                text_config={"model_type": "mistral", "head_dim": 128, "vocab_size": 131_072,
                             **sizes(5120, 14_336, 40, 32, 8)},
                vision_config=vit("pixtral", 1024, 4096, 24, 16, 1024, 16)), 12_682_739_712),
}

GLM_EYE = {"depth": 24, "hidden_size": 1536, "num_heads": 12, "out_hidden_size": 4096, "image_size": 336,
           "patch_size": 14, "attention_bias": False,
           "spatial_merge_size": 2, "temporal_patch_size": 2}
GLM = {
    "zai-org/GLM-4.1V-9B-Thinking": Case(
        wrapper("Glm4vForConditionalGeneration", "glm4v",
                text_config={"model_type": "glm4v_text", "vocab_size": 151_552, "attention_bias": True,
                             **sizes(4096, 13_696, 40, 32, 2)},
                vision_config=GLM_EYE | {"model_type": "glm4v", "intermediate_size": 13_696}), 10_292_777_472),
    "zai-org/GLM-4.5V": Case(
        wrapper("Glm4vMoeForConditionalGeneration", "glm4v_moe", tie_word_embeddings=False,
                text_config={"model_type": "glm4v_moe_text", "vocab_size": 151_552, "attention_bias": True,
                             "head_dim": 128,
                             "moe_intermediate_size": 1408, "n_routed_experts": 128, "n_shared_experts": 1,
                             "num_experts_per_tok": 8,
                             "first_k_dense_replace": 1, **sizes(4096, 10_944, 46, 96, 8)},
                vision_config=GLM_EYE | {"model_type": "glm4v_moe", "intermediate_size": 10_944}), 107_710_933_120),
}

MOONVIT = {"init_pos_emb_height": 64, "init_pos_emb_width": 64, "init_pos_emb_time": 4, "merge_kernel_size": [2, 2],
           "patch_size": 14,
           "mm_projector_type": "patchmerger", "vt_hidden_size": 1152, "vt_intermediate_size": 4304,
           "vt_num_attention_heads": 16,
           "vt_num_hidden_layers": 27}
MOONVIT_K3 = MOONVIT | {"mm_projector_type": "patchmergerv2", "vt_hidden_size": 1024, "vt_intermediate_size": 4096,
                        "vt_num_attention_heads": 12,
                        "qkv_hidden_size": 1536, "norm_type": "rmsnorm", "attn_bias": False, "linear_bias": False,
                        "patch_embed_proj_bias": False}
LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
          "first_k_dense_replace": 1,
          "moe_layer_freq": 1, "topk_method": "noaux_tc", "vocab_size": 163_840}
K2 = {"model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "q_lora_rank": 1536,
      "moe_intermediate_size": 2048, "n_routed_experts": 384,
      "n_shared_experts": 1, "num_experts_per_tok": 8, **sizes(7168, 18_432, 61, 64, 64), **LATENT}
MOONLIGHT = {"model_type": "deepseek_v3", "q_lora_rank": None, "moe_intermediate_size": 1408, "n_routed_experts": 64,
             "n_shared_experts": 2,
             "num_experts_per_tok": 6, **sizes(2048, 11_264, 27, 16, 16), **LATENT}
FULL_K3 = [*range(4, 93, 4), 93]
K3 = {"model_type": "kimi_linear", "architectures": ["KimiLinearForCausalLM"], "q_lora_rank": 1536,
      "moe_intermediate_size": 3072, "num_experts": 896,
      "num_shared_experts": 2, "num_experts_per_token": 16, "attn_res_block_size": 12, "latent_moe_use_norm": True,
      "mla_use_nope": True,
      "mla_use_output_gate": True, "routed_expert_hidden_size": 3584, "moe_router_activation_func": "sigmoid",
      "linear_attn_config": {"full_attn_layers": FULL_K3, "kda_layers": [i for i in range(1, 94) if i not in FULL_K3],
                             "head_dim": 128,
                             "num_heads": 96, "short_conv_kernel_size": 4, "use_full_rank_gate": True},
      **sizes(7168, 33_792, 93, 96, 96), **LATENT}


def kimi(kind: str, model_type: str, text: Fields, eye: Fields) -> Fields:
    return wrapper(kind, model_type, text_config=text, vision_config=eye, tie_word_embeddings=False)


KIMI = {
    "moonshotai/Kimi-VL-A3B-Instruct": Case(
        kimi("KimiVLForConditionalGeneration", "kimi_vl", MOONLIGHT,
             vit("moonvit", 1152, 4304, 27, 16, 896, 14, init_pos_emb_height=64, init_pos_emb_width=64,
                 merge_kernel_size=[2, 2])), 16_407_656_048),
    "moonshotai/Kimi-K2.5": Case(kimi("KimiK25ForConditionalGeneration", "kimi_k25", K2, MOONVIT), 1_026_879_376_368,
                                 True),
    "moonshotai/Kimi-K3": Case(kimi("KimiK3ForConditionalGeneration", "kimi_k3", K3, MOONVIT_K3), 2_779_931_837_184,
                               True),
}


def aya(model_type: str, inner: int, *text: int, **more: Any) -> Fields:
    return wrapper("AyaVisionForConditionalGeneration", "aya_vision", alignment_intermediate_size=inner,
                   downsample_factor=2,
                   vision_config=siglip(364), text_config={"model_type": model_type, "vocab_size": 256_000,
                                                           **sizes(*text), **more})


LFM2_LAYERS = ["conv", "conv", "full_attention"] * 3 + ["conv", "full_attention"] * 3 + ["conv"]
COHERE = {
    "CohereLabs/aya-vision-8b": Case(aya("cohere2", 28_672, 4096, 14_336, 32, 32, 8, head_dim=128), 8_631_842_032),
    "CohereLabs/aya-vision-32b": Case(aya("cohere", 49_152, 8192, 24_576, 40, 64, 8, use_qk_norm=False),
                                      33_137_288_432),
    "CohereLabs/command-a-vision-07-2025": Case(
        wrapper("Cohere2VisionForConditionalGeneration", "cohere2_vision", vision_config=siglip(512, patch=16),
                text_config={"model_type": "cohere2", "vocab_size": 256_000, "head_dim": 128,
                             **sizes(12_288, 36_864, 64, 96, 8)}), 111_867_525_360),
    "LiquidAI/LFM2.5-VL-1.6B": Case(
        wrapper("Lfm2VlForConditionalGeneration", "lfm2_vl", downsample_factor=2, projector_bias=True,
                projector_hidden_size=2048,
                projector_use_layernorm=False,
                text_config={"architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2",
                             "block_auto_adjust_ff_dim": True, "block_ff_dim": 12_288,
                             "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256, "conv_L_cache": 3,
                             "conv_bias": False,
                             "vocab_size": 65_536, "layer_types": LFM2_LAYERS, **sizes(2048, 12_288, 16, 32, 8)},
                vision_config=vit("siglip2_vision_model", 1152, 4304, 27, 16, 256, 16, num_patches=256,
                                  vision_use_head=False)), 1_596_625_904, True),
}


def whisper(width: int, encoder: int, decoder: int, heads: int, vocabulary: int = 51_865, bins: int = 80) -> Fields:
    return wrapper("WhisperForConditionalGeneration", "whisper", d_model=width, encoder_layers=encoder,
                   decoder_layers=decoder,
                   encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=4 * width,
                   decoder_ffn_dim=4 * width,
                   max_source_positions=1500, max_target_positions=448, num_hidden_layers=encoder, num_mel_bins=bins,
                   vocab_size=vocabulary)


def phi4(kind: str, model_type: str, **more: Any) -> Fields:
    return wrapper(kind, model_type, vocab_size=200_064, tie_word_embeddings=True, **sizes(3072, 8192, 32, 24, 8),
                   **more)


PHI4_AUDIO = {"attention_dim": 1024, "attention_heads": 16, "num_blocks": 24, "linear_units": 1536, "input_size": 80,
              "kernel_size": 3,
              "time_reduction": 8, "ext_pw_out_channel": 1024, "depthwise_seperable_out_channel": 1024,
              "depthwise_multiplier": 1,
              "nemo_conv_settings": {"conv_channels": 1024},
              "relative_attention_bias_args": {"t5_bias_max_distance": 500, "type": "t5"}}
EAR = {"num_mel_bins": 128, "encoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120,
       "d_model": 1280}
HEARING = {
    "openai/whisper-tiny": Case(whisper(384, 4, 4, 6), 37_760_640),
    "openai/whisper-large-v2": Case(whisper(1280, 32, 32, 20), 1_543_304_960, True),
    "openai/whisper-large-v3": Case(whisper(1280, 32, 32, 20, 51_866, 128), 1_543_490_560, True),
    "openai/whisper-large-v3-turbo": Case(whisper(1280, 32, 4, 20, 51_866, 128), 808_878_080, True),
    "mistralai/Voxtral-Mini-3B-2507": Case(
        wrapper("VoxtralForConditionalGeneration", "voxtral",
                text_config={"model_type": "llama", "head_dim": 128, "vocab_size": 131_072,
                                                                           **sizes(3072, 8192, 30, 32, 8)},
                audio_config={"model_type": "voxtral_encoder", "num_mel_bins": 128, "max_source_positions": 1500,
                              "head_dim": 64,
                              **sizes(1280, 5120, 32, 20, 20)}), 4_676_271_104),
    "Qwen/Qwen2-Audio-7B-Instruct": Case(
        wrapper("Qwen2AudioForConditionalGeneration", "qwen2_audio", vocab_size=156_032,
                audio_config={"model_type": "qwen2_audio_encoder", **EAR},
                text_config={"model_type": "qwen2", "intermediate_size": 11_008, "max_position_embeddings": 8192,
                             "vocab_size": 156_032}),
        8_397_094_912),
    "Qwen/Qwen2.5-Omni-7B thinker": Case(
        wrapper("Qwen2_5OmniThinkerForConditionalGeneration", "qwen2_5_omni_thinker",
                text_config={"model_type": "qwen2_5_omni_text", "vocab_size": 152_064,
                             **sizes(3584, 18_944, 28, 28, 4)},
                vision_config=QWEN25_EYE | {"model_type": "qwen2_5_omni_vision_encoder", "out_hidden_size": 3584},
                audio_config={"model_type": "qwen2_5_omni_audio_encoder", "output_dim": 3584, **EAR}), 8_931_813_888),
    "Qwen/Qwen3-Omni-30B-A3B-Instruct thinker": Case(
        wrapper("Qwen3OmniMoeThinkerForConditionalGeneration", "qwen3_omni_moe_thinker",
                text_config={"model_type": "qwen3_omni_moe_text", "head_dim": 128, "vocab_size": 152_064,
                             **sizes(2048, 768, 48, 32, 4),
                             **moe(128, 8, 768), **SPARSE},
                vision_config=QWEN3_EYE | WIDE | {"model_type": "qwen3_omni_moe_vision_encoder",
                                                  "out_hidden_size": 2048,
                                                  "deepstack_visual_indexes": [8, 16, 24]},
                audio_config={"model_type": "qwen3_omni_moe_audio_encoder", "output_dim": 2048,
                              "downsample_hidden_size": 480, **EAR}), 31_719_205_488),
    "microsoft/Phi-4-multimodal-instruct": Case(
        phi4("Phi4MMForCausalLM", "phi4mm", vision_lora={"r": 256}, speech_lora={"r": 320},
             audio_processor={"name": "cascades", "config": PHI4_AUDIO}), 5_574_460_384, True),
    "microsoft/Phi-4-multimodal-instruct in transformers": Case(
        phi4("Phi4MultimodalForCausalLM", "phi4_multimodal", vision_config={"model_type": "phi4_multimodal_vision"},
             audio_config={"model_type": "phi4_multimodal_audio", "bias_max_distance": 500}), 4_743_988_192),
}

CASES: dict[str, Case] = {**LLAVA, **GEMMA, **LLAMA, **QWEN, **INTERNVL, **IDEFICS, **MISTRAL, **GLM, **KIMI, **COHERE,
                          **HEARING}
