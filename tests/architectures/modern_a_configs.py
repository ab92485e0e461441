"""Fields of real config.json files that decide a model's size, by Hub id; what cannot change a count is left out.

Read from the Hub's files as the aiconfigurator-core 0.12.0 wheel and public repositories store them (2026-11-21);
where no stored copy was found, from the model's published hyper-parameters, which the Hub's count of the weights then
confirms.
"""

from typing import Any

Fields = dict[str, Any]


def _of(kind: str, model_type: str, **fields: Any) -> Fields:
    return {"architectures": [kind], "model_type": model_type, **fields}


def _sizes(hidden: int, inner: int, layers: int, heads: int, groups: int, vocabulary: int) -> Fields:
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": vocabulary,
    }


def _latent(query: int | None, latent: int, nope: int, rope: int, value: int) -> Fields:
    return {
        "q_lora_rank": query,
        "kv_lora_rank": latent,
        "qk_nope_head_dim": nope,
        "qk_rope_head_dim": rope,
        "v_head_dim": value,
    }


def _experts(count: int, chosen: int, width: int, shared: int, **fields: Any) -> Fields:
    return {
        "n_routed_experts": count,
        "num_experts_per_tok": chosen,
        "moe_intermediate_size": width,
        "n_shared_experts": shared,
        **fields,
    }


def _repeated(sliding: int, times: int, rest: int = 0, slide: str = "sliding_attention") -> list[str]:
    return ([slide] * sliding + ["full_attention"]) * times + [slide] * rest


def _qwen2(*sizes: int, tied: bool = False, **fields: Any) -> Fields:
    window = {"use_sliding_window": False, "sliding_window": 131_072, "max_window_layers": 28}
    return _of("Qwen2ForCausalLM", "qwen2", **_sizes(*sizes), tie_word_embeddings=tied, **(window | fields))


def _qwen3(*sizes: int, tied: bool = False) -> Fields:
    return _of(
        "Qwen3ForCausalLM",
        "qwen3",
        **_sizes(*sizes),
        head_dim=128,
        attention_bias=False,
        sliding_window=None,
        use_sliding_window=False,
        tie_word_embeddings=tied,
    )


def _qwen3_moe(hidden: int, layers: int, heads: int, experts: int, width: int) -> Fields:
    return _of(
        "Qwen3MoeForCausalLM",
        "qwen3_moe",
        **_sizes(hidden, 6144, layers, heads, 4, 151_936),
        head_dim=128,
        attention_bias=False,
        num_experts=experts,
        num_experts_per_tok=8,
        moe_intermediate_size=width,
        mlp_only_layers=[],
        decoder_sparse_step=1,
        tie_word_embeddings=False,
    )


_DELTA_NET = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_value_head_dim": 128,
}


def _qwen3_5(kind: str, model_type: str, values: int, layers: int, **fields: Any) -> Fields:
    return _of(
        kind,
        model_type,
        **_DELTA_NET,
        linear_num_value_heads=values,
        num_hidden_layers=layers,
        head_dim=256,
        layer_types=_repeated(3, layers // 4, slide="linear_attention"),
        attn_output_gate=True,
        vocab_size=248_320,
        mtp_num_hidden_layers=1,
        tie_word_embeddings=False,
        mamba_ssm_dtype="float32",
        **fields,
    )


def _gemma3(hidden: int, inner: int, layers: int, heads: int, groups: int, **fields: Any) -> Fields:
    return _of(
        "Gemma3ForCausalLM",
        "gemma3_text",
        **_sizes(hidden, inner, layers, heads, groups, 262_208),
        head_dim=256,
        sliding_window=1024,
        sliding_window_pattern=6,
        **fields,
    )


def _gpt_oss(layers: int, experts: int) -> Fields:
    return _of(
        "GptOssForCausalLM",
        "gpt_oss",
        **_sizes(2880, 2880, layers, 64, 8, 201_088),
        head_dim=64,
        attention_bias=True,
        num_local_experts=experts,
        num_experts_per_tok=4,
        sliding_window=128,
        layer_types=_repeated(1, layers // 2),
        tie_word_embeddings=False,
    )


def _llama4(experts: int, step: int) -> Fields:
    return _of(
        "Llama4ForCausalLM",
        "llama4_text",
        **_sizes(5120, 8192, 48, 40, 8, 202_048),
        head_dim=128,
        intermediate_size_mlp=16_384,
        num_local_experts=experts,
        num_experts_per_tok=1,
        interleave_moe_layer_step=step,
        attention_chunk_size=8192,
    )


def _deepseek(kind: str, model_type: str, sizes: tuple[int, ...], **fields: Any) -> Fields:
    return _of(
        kind, model_type, **_sizes(*sizes), moe_layer_freq=1, attention_bias=False, tie_word_embeddings=False, **fields
    )


def _deepseek_v4(
    hidden: int, layers: int, heads: int, query: int, groups: int, experts: int, width: int, ratios: list[int]
) -> Fields:
    return _of(
        "DeepseekV4ForCausalLM",
        "deepseek_v4",
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=1,
        head_dim=512,
        q_lora_rank=query,
        o_groups=groups,
        o_lora_rank=1024,
        qk_rope_head_dim=64,
        compress_ratios=ratios,
        index_n_heads=64,
        index_head_dim=128,
        index_topk=1024 if layers == 61 else 512,
        sliding_window=128,
        hc_mult=4,
        num_hash_layers=3,
        num_nextn_predict_layers=1,
        vocab_size=129_280,
        **_experts(experts, 6, width, 1),
        tie_word_embeddings=False,
    )


def _kimi(full: list[int], heads: int, layers: int, **linear: Any) -> Fields:
    others = [layer for layer in range(1, layers + 1) if layer not in full]
    return {
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "vocab_size": 163_840,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "tie_word_embeddings": False,
        "linear_attn_config": {
            "full_attn_layers": full,
            "kda_layers": others,
            "head_dim": 128,
            "num_heads": heads,
            "short_conv_kernel_size": 4,
            **linear,
        },
    }


def _glm_dsa(**fields: Any) -> Fields:
    return _deepseek(
        "GlmMoeDsaForCausalLM",
        "glm_moe_dsa",
        (6144, 12_288, 78, 64, 64, 154_880),
        **_latent(2048, 512, 192, 64, 256),
        **_experts(256, 8, 2048, 1),
        first_k_dense_replace=3,
        index_n_heads=32,
        index_head_dim=128,
        index_topk=2048,
        num_nextn_predict_layers=1,
        topk_method="noaux_tc",
        **fields,
    )


def _glm_moe(hidden: int, inner: int, layers: int, width: int, experts: int, dense: int, normed: bool) -> Fields:
    return _of(
        "Glm4MoeForCausalLM",
        "glm4_moe",
        **_sizes(hidden, inner, layers, 96, 8, 151_552),
        head_dim=128,
        attention_bias=True,
        **_experts(experts, 8, width, 1),
        first_k_dense_replace=dense,
        use_qk_norm=normed,
        num_nextn_predict_layers=1,
        tie_word_embeddings=False,
    )


_V3 = (7168, 18_432, 61, 128, 128, 129_280)
_V3_LATENT = _latent(1536, 512, 128, 64, 128)
_MIMO_SLIDES = [0, 1, 1, 1, 1, *([0] + [1] * 5) * 7, 0]

CONFIGS: dict[str, Fields] = {
    "Qwen/Qwen2.5-0.5B": _qwen2(896, 4864, 24, 14, 2, 151_936, tied=True),
    "Qwen/Qwen2.5-1.5B": _qwen2(1536, 8960, 28, 12, 2, 151_936, tied=True),
    "Qwen/Qwen2.5-7B": _qwen2(3584, 18_944, 28, 28, 4, 152_064),
    "Qwen/Qwen2.5-72B": _qwen2(8192, 29_568, 80, 64, 8, 152_064),
    "Qwen/Qwen1.5-MoE-A2.7B": _of("Qwen2MoeForCausalLM", "qwen2_moe", **_sizes(2048, 5632, 24, 16, 16, 151_936),
        num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408, shared_expert_intermediate_size=5632,
        decoder_sparse_step=1, use_sliding_window=False, sliding_window=32_768, max_window_layers=21,
        tie_word_embeddings=False),
    "Qwen/Qwen2-57B-A14B": _of("Qwen2MoeForCausalLM", "qwen2_moe", **_sizes(3584, 18_944, 28, 28, 4, 151_936),
        num_experts=64, num_experts_per_tok=8, moe_intermediate_size=2560, shared_expert_intermediate_size=20_480,
        decoder_sparse_step=1, use_sliding_window=False, sliding_window=131_072, max_window_layers=28,
        tie_word_embeddings=False),
    "Qwen/Qwen3-0.6B": _qwen3(1024, 3072, 28, 16, 8, 151_936, tied=True),
    "Qwen/Qwen3-4B": _qwen3(2560, 9728, 36, 32, 8, 151_936, tied=True),
    "Qwen/Qwen3-32B": _qwen3(5120, 25_600, 64, 64, 8, 151_936),
    "Qwen/Qwen3-30B-A3B": _qwen3_moe(2048, 48, 32, 128, 768),
    "Qwen/Qwen3-235B-A22B": _qwen3_moe(4096, 94, 64, 128, 1536),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": _of( "Qwen3NextForCausalLM", "qwen3_next", **_sizes(2048, 5120, 48, 16, 2,
        151_936), head_dim=256, **_DELTA_NET, linear_num_value_heads=32, full_attention_interval=4, num_experts=512,
        num_experts_per_tok=10, moe_intermediate_size=512, shared_expert_intermediate_size=512, decoder_sparse_step=1,
        mlp_only_layers=[], tie_word_embeddings=False),
    "Qwen/Qwen3.5-27B": _qwen3_5("Qwen3_5ForCausalLM", "qwen3_5_text", 48, 64, hidden_size=5120,
        intermediate_size=17_408, num_attention_heads=24, num_key_value_heads=4),
    "Qwen/Qwen3.5-35B-A3B": _qwen3_5("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", 32, 40, hidden_size=2048,
        num_attention_heads=16, num_key_value_heads=2, num_experts=256, num_experts_per_tok=8,
        moe_intermediate_size=512, shared_expert_intermediate_size=512),
    "google/gemma-2b": _of("GemmaForCausalLM", "gemma", **_sizes(2048, 16_384, 18, 8, 1, 256_000), head_dim=256),
    "google/gemma-7b": _of("GemmaForCausalLM", "gemma", **_sizes(3072, 24_576, 28, 16, 16, 256_000), head_dim=256),
    "google/gemma-2-9b": _of("Gemma2ForCausalLM", "gemma2", **_sizes(3584, 14_336, 42, 16, 8, 256_000), head_dim=256,
        sliding_window=4096),
    "google/gemma-2-27b": _of("Gemma2ForCausalLM", "gemma2", **_sizes(4608, 36_864, 46, 32, 16, 256_000), head_dim=128,
        sliding_window=4096),
    "google/gemma-3-1b-pt": _gemma3(1152, 6912, 26, 4, 1) | {"vocab_size": 262_144, "sliding_window": 512},
    "google/gemma-3-4b-pt text": _of("Gemma3ForCausalLM", "gemma3_text", hidden_size=2560, intermediate_size=10_240,
        num_hidden_layers=34, sliding_window=1024),
    "google/gemma-3-27b-pt text": _gemma3(5376, 21_504, 62, 32, 16) | {"head_dim": 128},
    "google/gemma-3n-E2B text": _of("Gemma3nForCausalLM", "gemma3n_text", **_sizes(2048, 8192, 30, 8, 2, 262_400),
        head_dim=256, sliding_window=512, layer_types=_repeated(4, 6), num_kv_shared_layers=10, laurel_rank=64,
        altup_num_inputs=4, hidden_size_per_layer_input=256, vocab_size_per_layer_input=262_144),
    "google/gemma-3n-E4B text": _of("Gemma3nForCausalLM", "gemma3n_text", **_sizes(2048, 16_384, 35, 8, 2, 262_400),
        head_dim=256, sliding_window=512, layer_types=_repeated(4, 7), num_kv_shared_layers=15, laurel_rank=64,
        altup_num_inputs=4, hidden_size_per_layer_input=256, vocab_size_per_layer_input=262_144),
    "google/gemma-4-26B-A4B text": _of("Gemma4ForCausalLM", "gemma4_text", **_sizes(2816, 2112, 30, 16, 8, 262_144),
        head_dim=256, global_head_dim=512, num_global_key_value_heads=2, attention_k_eq_v=True, sliding_window=1024,
        layer_types=_repeated(5, 5), enable_moe_block=True, num_experts=128, top_k_experts=8,
        moe_intermediate_size=704, hidden_size_per_layer_input=0, num_kv_shared_layers=0),
    "google/gemma-4-31B text": _of("Gemma4ForCausalLM", "gemma4_text", **_sizes(5376, 21_504, 60, 32, 16, 262_144),
        head_dim=256, global_head_dim=512, num_global_key_value_heads=4, attention_k_eq_v=True, sliding_window=1024,
        layer_types=_repeated(5, 10), enable_moe_block=False, hidden_size_per_layer_input=0, num_kv_shared_layers=0),
    "openai/gpt-oss-20b": _gpt_oss(24, 32),
    "openai/gpt-oss-120b": _gpt_oss(36, 128),
    "meta-llama/Llama-4-Scout text": _llama4(16, 1),
    "meta-llama/Llama-4-Maverick text": _llama4(128, 2),
    "mistralai/Mixtral-8x7B-v0.1": _of("MixtralForCausalLM", "mixtral", **_sizes(4096, 14_336, 32, 32, 8, 32_000),
        num_local_experts=8, num_experts_per_tok=2, sliding_window=None, tie_word_embeddings=False),
    "mistralai/Mixtral-8x22B-v0.1": _of("MixtralForCausalLM", "mixtral", **_sizes(6144, 16_384, 56, 48, 8, 32_000),
        num_local_experts=8, num_experts_per_tok=2, sliding_window=None, tie_word_embeddings=False),
    "deepseek-ai/DeepSeek-V2-Lite": _deepseek( "DeepseekV2ForCausalLM", "deepseek_v2", (2048, 10_944, 27, 16, 16,
        102_400), **_latent(None, 512, 128, 64, 128), **_experts(64, 6, 1408, 2), first_k_dense_replace=1,
        topk_method="greedy"),
    "deepseek-ai/DeepSeek-V2": _deepseek( "DeepseekV2ForCausalLM", "deepseek_v2", (5120, 12_288, 60, 128, 128,
        102_400), **_V3_LATENT, **_experts(160, 6, 1536, 2), first_k_dense_replace=1,
        topk_method="group_limited_greedy"),
    "deepseek-ai/DeepSeek-V3": _deepseek("DeepseekV3ForCausalLM", "deepseek_v3", _V3, **_V3_LATENT, **_experts(256, 8,
        2048, 1), first_k_dense_replace=3, topk_method="noaux_tc", num_nextn_predict_layers=1),
    "deepseek-ai/DeepSeek-V3.2": _deepseek( "DeepseekV32ForCausalLM", "deepseek_v32", _V3, **_V3_LATENT,
        **_experts(256, 8, 2048, 1), first_k_dense_replace=3, topk_method="noaux_tc", num_nextn_predict_layers=1,
        index_n_heads=64, index_head_dim=128, index_topk=2048),
    "moonshotai/Kimi-K2-Instruct": _deepseek( "DeepseekV3ForCausalLM", "kimi_k2", (7168, 18_432, 61, 64, 64, 163_840),
        **_V3_LATENT, **_experts(384, 8, 2048, 1), first_k_dense_replace=1, topk_method="noaux_tc",
        num_nextn_predict_layers=0),
    "deepseek-ai/DeepSeek-V4-Flash": _deepseek_v4(4096, 43, 64, 1024, 8, 256, 2048, [0, 0, *[4, 128] * 20, 4, 0]),
    "deepseek-ai/DeepSeek-V4-Pro": _deepseek_v4(7168, 61, 128, 1536, 16, 384, 3072, [128, 128, *[4, 128] * 29, 4, 0]),
    "moonshotai/Kimi-Linear-48B-A3B": _of( "KimiLinearForCausalLM", "kimi_linear", **_kimi([4, 8, 12, 16, 20, 24, 27],
        32, 27), hidden_size=2304, intermediate_size=9216, **_latent(None, 512, 128, 64, 128), num_experts=256,
        num_experts_per_token=8, moe_intermediate_size=1024, num_shared_experts=1),
    "moonshotai/Kimi-K3 text": _of( "KimiLinearForCausalLM", "kimi_linear", **_kimi([*range(4, 93, 4), 93], 96, 93,
        use_full_rank_gate=True), hidden_size=7168, intermediate_size=33_792, **_V3_LATENT, num_experts=896,
        num_experts_per_token=16, moe_intermediate_size=3072, num_shared_experts=2, routed_expert_hidden_size=3584,
        latent_moe_use_norm=True, mla_use_output_gate=True, attn_res_block_size=12),
    "zai-org/glm-4-9b-chat-hf": _of("GlmForCausalLM", "glm", **_sizes(4096, 13_696, 40, 32, 2, 151_552), head_dim=128,
        attention_bias=True, tie_word_embeddings=False),
    "zai-org/GLM-4-9B-0414": _of("Glm4ForCausalLM", "glm4", **_sizes(4096, 13_696, 40, 32, 2, 151_552), head_dim=128,
        attention_bias=True, tie_word_embeddings=False),
    "zai-org/GLM-4-32B-0414": _of("Glm4ForCausalLM", "glm4", **_sizes(6144, 23_040, 61, 48, 2, 151_552), head_dim=128,
        attention_bias=False, tie_word_embeddings=False),
    "zai-org/GLM-4.5-Air": _glm_moe(4096, 10_944, 46, 1408, 128, 1, False),
    "zai-org/GLM-4.5": _glm_moe(5120, 12_288, 92, 1536, 160, 3, True),
    "zai-org/GLM-4.7-Flash": _deepseek("Glm4MoeLiteForCausalLM", "glm4_moe_lite", (2048, 10_240, 47, 20, 20, 154_880),
        **_latent(768, 512, 192, 64, 256), **_experts(64, 4, 1536, 1), first_k_dense_replace=1,
        num_nextn_predict_layers=1),
    "zai-org/GLM-5": _glm_dsa(),
    "zai-org/GLM-5.2": _glm_dsa(indexer_types=["full"] * 3 + (["shared"] * 3 + ["full"]) * 18 + ["shared"] * 3),
    "XiaomiMiMo/MiMo-7B-Base": _of("MiMoForCausalLM", "mimo", **_sizes(4096, 11_008, 36, 32, 8, 151_680), head_dim=128,
        attention_bias=True, sliding_window=32_768, max_window_layers=32, use_sliding_window=False,
        num_nextn_predict_layers=1, tie_word_embeddings=False),
    "XiaomiMiMo/MiMo-V2-Flash": _of( "MiMoV2FlashForCausalLM", "mimo_v2_flash", **_sizes(4096, 16_384, 48, 64, 4,
        152_576), head_dim=192, v_head_dim=128, swa_num_attention_heads=64, swa_num_key_value_heads=8,
        swa_head_dim=192, swa_v_head_dim=128, sliding_window=128, hybrid_layer_pattern=_MIMO_SLIDES, moe_layer_freq=[0]
        + [1] * 47, n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=2048, n_shared_experts=None,
        add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False, attention_bias=False,
        tie_word_embeddings=False),
}  # fmt: skip
