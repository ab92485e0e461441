"""More config.json fields, as in modern_a_configs.py: families that are a small variation of another."""

from architectures.modern_a_configs import Fields, _experts, _latent, _of, _repeated, _sizes

_STEP_KINDS = (["full_attention"] + ["sliding_attention"] * 3) * 12
_STEP_SLIDING = {
    "attention_type": "sliding_attention",
    "num_attention_heads": 96,
    "num_attention_groups": 8,
    "head_dim": 128,
}


def _exaone4(*sizes: int, tied: bool, window: int | None) -> Fields:
    layers = sizes[2]
    kinds = _repeated(3, layers // 4, layers % 4) if window else ["full_attention"] * layers
    return _of(
        "Exaone4ForCausalLM",
        "exaone4",
        **_sizes(*sizes),
        head_dim=sizes[0] // sizes[3],
        sliding_window=window,
        sliding_window_pattern="LLLG" if window else None,
        layer_types=kinds,
        tie_word_embeddings=tied,
    )


def _ernie_moe(*sizes: int, **fields: object) -> Fields:
    return _of(
        "Ernie4_5_MoeForCausalLM",
        "ernie4_5_moe",
        **_sizes(*sizes),
        moe_num_experts=64,
        moe_layer_interval=1,
        num_nextn_predict_layers=1,
        use_bias=False,
        **fields,
    )


MORE: dict[str, Fields] = {
    "mistralai/Ministral-3-3B text": _of("Ministral3ForCausalLM", "ministral3", **_sizes(3072, 9216, 26, 32, 8,
        131_072), head_dim=128, sliding_window=None, tie_word_embeddings=True),
    "mistralai/Ministral-3-8B text": _of("Ministral3ForCausalLM", "ministral3", **_sizes(4096, 14_336, 34, 32, 8,
        131_072), head_dim=128, sliding_window=None, tie_word_embeddings=False),
    "mistralai/Mistral-Small-4-119B text": _of( "Mistral4ForCausalLM", "mistral4", **_sizes(4096, 12_288, 36, 32, 32,
        131_072), **_latent(1024, 256, 64, 64, 128), **_experts(128, 4, 2048, 1), first_k_dense_replace=0,
        tie_word_embeddings=False),
    "stepfun-ai/Step-3.5-Flash": _of( "Step3p5ForCausalLM", "step3p5", hidden_size=4096, intermediate_size=11_264,
        num_hidden_layers=45, num_attention_heads=64, num_attention_groups=8, head_dim=128, vocab_size=128_896,
        moe_num_experts=288, moe_top_k=8, moe_intermediate_size=1280, share_expert_dim=1280,
        moe_layers_enum=",".join(map(str, range(3, 45))), layer_types=_STEP_KINDS, sliding_window=512,
        attention_other_setting=_STEP_SLIDING, num_nextn_predict_layers=3),
    "baidu/ERNIE-4.5-0.3B-PT": _of("Ernie4_5ForCausalLM", "ernie4_5", **_sizes(1024, 3072, 18, 16, 2, 103_424),
        head_dim=128, use_bias=False, tie_word_embeddings=True),
    "baidu/ERNIE-4.5-21B-A3B-PT": _ernie_moe(2560, 12_288, 28, 20, 4, 103_424, moe_k=6, moe_intermediate_size=1536,
        moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=-1, tie_word_embeddings=True),
    "baidu/ERNIE-4.5-300B-A47B-PT": _ernie_moe(8192, 28_672, 54, 64, 8, 103_424, moe_k=8, moe_intermediate_size=3584,
        moe_num_shared_experts=0, moe_layer_start_index=3, moe_layer_end_index=53, tie_word_embeddings=False),
    "tencent/Hunyuan-7B-Instruct": _of("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", **_sizes(4096, 14_336, 32, 32,
        8, 128_167), head_dim=128, attention_bias=False, tie_word_embeddings=True),
    "tencent/Hunyuan-A13B-Instruct": _of( "HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", **_sizes(4096, 3072, 32, 32, 8,
        128_167), head_dim=128, attention_bias=False, num_experts=64, moe_topk=[8] * 32, num_shared_expert=[1] * 32,
        moe_intermediate_size=[3072] * 32, tie_word_embeddings=True),
    "tencent/Hy3": _of("HYV3ForCausalLM", "hy_v3", **_sizes(4096, 13_312, 80, 64, 8, 120_832), head_dim=128,
        num_experts=192, num_experts_per_tok=8, num_shared_experts=1, moe_intermediate_size=1536,
        first_k_dense_replace=1, num_nextn_predict_layers=1, tie_word_embeddings=False),
    "ByteDance-Seed/Seed-OSS-36B-Base": _of("SeedOssForCausalLM", "seed_oss", **_sizes(5120, 27_648, 64, 80, 8,
        155_136), head_dim=128, attention_bias=True, attention_out_bias=False, mlp_bias=False,
        tie_word_embeddings=False),
    "rednote-hilab/dots.llm1.base": _of("Dots1ForCausalLM", "dots1", **_sizes(4096, 10_944, 62, 32, 32, 152_064),
        head_dim=128, **_experts(128, 6, 1408, 2), first_k_dense_replace=1, attention_bias=False, sliding_window=None,
        max_window_layers=62, tie_word_embeddings=False),
    "arcee-ai/AFM-4.5B": _of("ArceeForCausalLM", "arcee", **_sizes(2560, 18_432, 36, 20, 4, 128_004), head_dim=128,
        attention_bias=False, mlp_bias=False, tie_word_embeddings=False),
    "arcee-ai/Trinity-Large-Preview": _of( "AfmoeForCausalLM", "afmoe", **_sizes(3072, 12_288, 60, 48, 8, 200_192),
        head_dim=128, num_experts=256, num_experts_per_tok=4, num_shared_experts=1, moe_intermediate_size=3072,
        num_dense_layers=6, sliding_window=4096, global_attn_every_n_layers=4, tie_word_embeddings=False),
    "LGAI-EXAONE/EXAONE-4.0-1.2B": _exaone4(2048, 4096, 30, 32, 8, 102_400, tied=True, window=None),
    "LGAI-EXAONE/EXAONE-4.0-32B": _exaone4(5120, 27_392, 64, 40, 8, 102_400, tied=False, window=4096),
    "LGAI-EXAONE/K-EXAONE-236B-A23B": _of( "ExaoneMoeForCausalLM", "exaone_moe", **_sizes(6144, 18_432, 48, 64, 8,
        153_600), head_dim=128, num_experts=128, num_experts_per_tok=8, num_shared_experts=1,
        moe_intermediate_size=2048, first_k_dense_replace=1, sliding_window=128, sliding_window_pattern="LLLG",
        layer_types=_repeated(3, 12), tie_word_embeddings=False),
    "upstage/Solar-Open-100B": _of("SolarOpenForCausalLM", "solar_open", **_sizes(4096, 10_240, 48, 64, 8, 196_608),
        head_dim=128, **_experts(128, 8, 1280, 1), attention_bias=False, tie_word_embeddings=False),
    "inclusionAI/Ling-3.0-flash": _of( "BailingHybridForCausalLM", "bailing_hybrid", **_sizes(2560, 6144, 42, 32, 32,
        157_184), **_latent(None, 512, 128, 64, 128), head_dim=128, num_experts=512, num_experts_per_tok=8,
        num_shared_experts=1, moe_intermediate_size=768, first_k_dense_replace=2, layer_group_size=6,
        short_conv_kernel_size=4, num_nextn_predict_layers=1, tie_word_embeddings=False),
    "meituan-longcat/LongCat-Flash-Chat": _of( "LongcatFlashForCausalLM", "longcat_flash", hidden_size=6144,
        ffn_hidden_size=12_288, num_layers=28, num_attention_heads=64, **_latent(1536, 512, 128, 64, 128),
        n_routed_experts=512, zero_expert_num=256, moe_topk=12, expert_ffn_hidden_size=2048, vocab_size=131_072,
        attention_bias=False, tie_word_embeddings=False),
    "openbmb/MiniCPM3-4B": _of("MiniCPM3ForCausalLM", "minicpm3", **_sizes(2560, 6400, 62, 40, 40, 73_448),
        q_lora_rank=768, kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32),
    "tencent/Youtu-LLM-2B": _of("YoutuForCausalLM", "youtu", **_sizes(2048, 6144, 32, 16, 16, 128_256), **_latent(1536,
        512, 128, 64, 128), tie_word_embeddings=True),
    "zai-org/GLM-5.3-Flash text": _of( "Glm5NextForCausalLM", "glm5_next_text", **_sizes(4096, 12_288, 45, 64, 64,
        154_880), **_latent(1536, 512, 256, 0, 256), **_experts(288, 8, 2048, 1), attention_bias=False,
        index_n_heads=32, index_head_dim=128, index_topk=2048, index_kpool=4, indexer_types=["full"] * 45, hc_mult=4,
        linear_attn_config={"num_heads": 64, "head_dim": 128, "short_conv_kernel_size": 4}, mlp_layer_types=["dense"] *
        3 + ["sparse"] * 42, first_k_dense_replace=3, num_nextn_predict_layers=1, layer_types=(["linear_attention"] * 3
        + ["deepseek_sparse_attention"]) * 11 + ["linear_attention"], tie_word_embeddings=False),
}  # fmt: skip
