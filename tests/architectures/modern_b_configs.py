"""Fields of real config.json files that decide a model's size, by Hub id; what cannot change a count is left out.

Read from the Hub's files as the aiconfigurator-core wheel and public repositories store them (2026-11-21):
debaditc/kvfit src/kvfit/data/models.json (Granite 4.0 H-Small, Nemotron Nano 9B v2), sdpython/experimental-experiment
experimental_experiment/torch_models/llm_model_helper.py (Jamba 1.5 Mini, Falcon Mamba), BudEcosystem/simulator
llm-memory-calculator/tests/fixtures/hybrid_configs (Codestral Mamba), SoumilB7/unfold tests/sable_test_corpus (OLMo 2
7B, Granite 3.0 8B), NX-AI/mlstm_kernels' copy of Zyphra's first Zamba2-7B. Where no stored copy was found, from the
model's published hyper-parameters, which the Hub's count of the weights then confirms.
"""

from typing import Any

Fields = dict[str, Any]


def _of(kind: str, model_type: str, **fields: Any) -> Fields:
    return {"architectures": [kind], "model_type": model_type, **fields}


def _sizes(
    hidden: int, inner: int, layers: int, heads: int, groups: int, vocabulary: int, tied: bool = False
) -> Fields:
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
    }


def _placed(layers: int, usual: str, other: str, at: tuple[int, ...]) -> list[str]:
    return [other if i in at else usual for i in range(layers)]


_GRANITE_4_KINDS = _placed(40, "mamba", "attention", (5, 15, 25, 35))
_GRANITE_4 = {
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_n_groups": 1,
    "mamba_d_head": 64,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
    "layer_types": _GRANITE_4_KINDS,
}


def _granite_moe(
    kind: str, model_type: str, hidden: int, layers: int, heads: int, experts: int, chosen: int, **fields: Any
) -> Fields:
    sizes = _sizes(hidden, 512, layers, heads, 8, 49_155, tied=True)
    return _of(kind, model_type, **sizes, num_local_experts=experts, num_experts_per_tok=chosen, **fields)


def _granite_4(*sizes: int, experts: int, chosen: int, shared: int, heads: int) -> Fields:
    return _of(
        "GraniteMoeHybridForCausalLM",
        "granitemoehybrid",
        **_sizes(*sizes, tied=True),
        **_GRANITE_4,
        num_local_experts=experts,
        num_experts_per_tok=chosen,
        shared_intermediate_size=shared,
        mamba_n_heads=heads,
    )


_NEMOTRON_H = {"ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "use_conv_bias": True, "use_bias": False}
_NEMOTRON_3 = {
    **_NEMOTRON_H,
    "head_dim": 128,
    "mamba_head_dim": 64,
    "n_shared_experts": 1,
    "mamba_ssm_cache_dtype": "float32",
}
_NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
_SUPER = "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME"
_ULTRA = "MEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
_NAMES = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}


def _nemotron_h(pattern: str, *sizes: int, heads: int, width: int, **fields: Any) -> Fields:
    return _of(
        "NemotronHForCausalLM",
        "nemotron_h",
        **_sizes(*sizes),
        hybrid_override_pattern=pattern,
        mamba_num_heads=heads,
        mamba_head_dim=width,
        **{**_NEMOTRON_H, **fields},
    )


def _nemotron_3(*sizes: int, heads: int, experts: int, chosen: int, shared: int, **fields: Any) -> Fields:
    return _of(
        "NemotronHForCausalLM",
        "nemotron_h",
        **_sizes(*sizes),
        **_NEMOTRON_3,
        mamba_num_heads=heads,
        n_routed_experts=experts,
        num_experts_per_tok=chosen,
        moe_intermediate_size=sizes[1],
        moe_shared_expert_intermediate_size=shared,
        **fields,
    )


def _named(pattern: str) -> list[str]:
    return [_NAMES[letter] for letter in pattern]


# key heads a group and width of the feed-forward, and how many layers have them: their order changes no count
_SUPER_49B = (
    (8, 5.25, 48),
    (None, 1.3125, 10),
    (None, 1.0, 8),
    (None, 0.5, 6),
    (None, 2.625, 5),
    (8, 2.625, 1),
    (None, 3.28125, 1),
    (None, 5.25, 1),
)


def _block(group: int | None, multiple: float) -> Fields:
    attention = {"n_heads_in_group": group, "no_op": group is None, "replace_with_linear": False, "window_length": None}
    return {"attention": attention, "ffn": {"ffn_mult": multiple, "no_op": False, "replace_with_linear": False}}


def _jamba(hidden: int, inner: int, layers: int, heads: int, rank: int) -> Fields:
    return _of(
        "JambaForCausalLM",
        "jamba",
        **_sizes(hidden, inner, layers, heads, 8, 65_536),
        attn_layer_offset=4,
        attn_layer_period=8,
        expert_layer_offset=1,
        expert_layer_period=2,
        mamba_conv_bias=True,
        mamba_d_conv=4,
        mamba_d_state=16,
        mamba_dt_rank=rank,
        mamba_expand=2,
        mamba_proj_bias=False,
        num_experts=16,
        num_experts_per_tok=2,
    )


def _mamba(hidden: int, layers: int) -> Fields:
    return _of(
        "MambaForCausalLM",
        "mamba",
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        vocab_size=50_280,
        state_size=16,
        conv_kernel=4,
        expand=2,
        time_step_rank=hidden // 16,
        use_bias=False,
        use_conv_bias=True,
    )


def _falcon_h1(*sizes: int, head: int, heads: int, width: int, state: int, groups: int) -> Fields:
    return _of(
        "FalconH1ForCausalLM",
        "falcon_h1",
        **_sizes(*sizes),
        head_dim=head,
        mamba_n_heads=heads,
        mamba_d_head=width,
        mamba_d_ssm=heads * width,
        mamba_d_state=state,
        mamba_n_groups=groups,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_rms_norm=False,
        mamba_conv_bias=True,
        mamba_proj_bias=False,
        projectors_bias=False,
    )


def _zamba2(
    *sizes: int, at: tuple[int, ...], heads: int, state: int, groups: int, blocks: int, adapter: bool
) -> Fields:
    return _of(
        "Zamba2ForCausalLM",
        "zamba2",
        **_sizes(*sizes, tied=True),
        layers_block_type=_placed(sizes[2], "mamba", "hybrid", at),
        n_mamba_heads=heads,
        mamba_d_state=state,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_ngroups=groups,
        num_mem_blocks=blocks,
        adapter_rank=128,
        use_shared_attention_adapter=adapter,
        add_bias_linear=False,
    )


def _lfm2(hidden: int, width: int, heads: int) -> Fields:
    return _of(
        "Lfm2ForCausalLM",
        "lfm2",
        hidden_size=hidden,
        block_ff_dim=width,
        block_auto_adjust_ff_dim=True,
        block_multiple_of=256,
        block_ffn_dim_multiplier=1.0,
        conv_L_cache=3,
        conv_bias=False,
        full_attn_idxs=[2, 5, 8, 10, 12, 14],
        num_hidden_layers=16,
        num_attention_heads=heads,
        num_key_value_heads=8,
        vocab_size=65_536,
        max_position_embeddings=128_000,
    )


def _recurrent_gemma(hidden: int, inner: int, layers: int, heads: int) -> Fields:
    return _of(
        "RecurrentGemmaForCausalLM",
        "recurrent_gemma",
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=1,
        lru_width=hidden,
        attention_window_size=2048,
        conv1d_width=4,
        block_types=["recurrent", "recurrent", "attention"],
        vocab_size=256_000,
    )


def _rwkv(hidden: int, layers: int) -> Fields:
    return _of(
        "RwkvForCausalLM",
        "rwkv",
        hidden_size=hidden,
        attention_hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        vocab_size=50_277,
        context_length=1024,
        tie_word_embeddings=False,
    )


_LIGHTNING = {
    **_sizes(6144, 9216, 80, 64, 8, 200_064),
    "head_dim": 128,
    "num_local_experts": 32,
    "num_experts_per_tok": 2,
}
_M2 = {**_sizes(3072, 1536, 62, 48, 8, 200_064), "head_dim": 128, "num_local_experts": 256, "num_experts_per_tok": 8,
       "use_qk_norm": True, "qk_norm_type": "per_layer", "use_routing_bias": True, "use_mtp": True,
       "num_mtp_modules": 3, "mtp_transformer_layers": 1, "shared_intermediate_size": 0,
       "max_position_embeddings": 196_608}  # fmt: skip
_DENSE_FIRST = [0] * 3 + [1] * 57
_M3 = {**_sizes(6144, 3072, 60, 64, 4, 200_064), "head_dim": 128, "dense_intermediate_size": 12_288,
       "shared_intermediate_size": 3072, "num_local_experts": 128, "num_experts_per_tok": 4, "n_shared_experts": 1,
       "moe_layer_freq": _DENSE_FIRST, "num_mtp_modules": 1, "qk_norm_type": "per_head", "use_routing_bias": True,
       "max_position_embeddings": 1_048_576,
       "sparse_attention_config": {"use_sparse_attention": True, "sparse_index_dim": 128, "sparse_num_index_heads": 4,
                                   "sparse_topk_blocks": 16, "sparse_block_size": 128, "sparse_local_block": 1,
                                   "sparse_attention_freq": _DENSE_FIRST}}  # fmt: skip
_M3_VISION = {
    "hidden_size": 1280,
    "num_attention_heads": 16,
    "num_hidden_layers": 32,
    "intermediate_size": 5120,
    "patch_size": 14,
    "image_size": 2016,
    "model_type": "clip_vision_model",
    "num_channels": 3,
}
_HYMBA_GROUPS = [[i, i + 1] for i in range(1, 15, 2)] + [[16, 17, 18]] + [[i, i + 1] for i in range(19, 31, 2)]

GRANITE = {
    "ibm-granite/granite-3.3-2b-instruct": _of("GraniteForCausalLM", "granite",
                                               **_sizes(2048, 8192, 40, 32, 8, 49_159, True)),
    "ibm-granite/granite-3.3-8b-instruct": _of("GraniteForCausalLM", "granite",
                                               **_sizes(4096, 12_800, 40, 32, 8, 49_159, True)),
    "ibm-granite/granite-3.0-1b-a400m-base": _granite_moe("GraniteMoeForCausalLM", "granitemoe", 1024, 24, 16, 32, 8),
    "ibm-granite/granite-3.0-3b-a800m-base": _granite_moe("GraniteMoeForCausalLM", "granitemoe", 1536, 32, 24, 40, 8),
    "ibm-research/moe-7b-1b-active-shared-experts": _granite_moe(
        "GraniteMoeSharedForCausalLM", "granitemoeshared", 1536, 40, 24, 62, 6, shared_intermediate_size=1024),
    "ibm-granite/granite-4.0-micro": _of(
        "GraniteMoeHybridForCausalLM", "granitemoehybrid", **_sizes(2560, 8192, 40, 40, 8, 100_352, True),
        num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=8192, layer_types=["attention"] * 40),
    "ibm-granite/granite-4.0-h-micro": _granite_4(2048, 8192, 40, 32, 8, 100_352, experts=0, chosen=0, shared=8192,
                                                  heads=64),
    "ibm-granite/granite-4.0-h-tiny": _granite_4(1536, 512, 40, 12, 4, 100_352, experts=64, chosen=6, shared=1024,
                                                 heads=48),
    "ibm-granite/granite-4.0-h-small": _granite_4(4096, 768, 40, 32, 8, 100_352, experts=72, chosen=10, shared=1536,
                                                  heads=128),
}  # fmt: skip
NEMOTRON = {
    "nvidia/Minitron-4B-Base": _of("NemotronForCausalLM", "nemotron", **_sizes(3072, 9216, 32, 24, 8, 256_000),
                                   head_dim=128),
    "nvidia/Nemotron-4-340B-Base": _of("NemotronForCausalLM", "nemotron", **_sizes(18_432, 73_728, 96, 96, 8, 256_000)),
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": _of(
        "DeciLMForCausalLM", "nemotron-nas", hidden_size=8192, intermediate_size=None, num_attention_heads=64,
        num_hidden_layers=80, num_key_value_heads=None, vocab_size=128_256, tie_word_embeddings=False,
        attention_bias=False, mlp_bias=False,
        block_configs=[_block(group, multiple) for group, multiple, count in _SUPER_49B for _ in range(count)]),
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": _nemotron_h(
        "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", 4480, 15_680, 56, 40, 8, 131_072, heads=128,
        width=80, head_dim=128),
    "nvidia/Nemotron-H-56B-Base-8K": _nemotron_h(
        "M-M-M-M*" + "-M-M-M-M-M*" * 9 + "-M-M-M-M-M-", 8192, 32_768, 118, 64, 8, 131_072, heads=256, width=64,
        ssm_state_size=256, attention_head_dim=128),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": _nemotron_3(
        2688, 1856, 52, 32, 2, 131_072, heads=64, experts=128, chosen=6, shared=3712, hybrid_override_pattern=_NANO),
    "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16": _nemotron_3(
        2688, 1856, 52, 32, 2, 131_072, heads=64, experts=128, chosen=6, shared=3712, layers_block_type=_named(_NANO),
        moe_latent_size=None, num_nextn_predict_layers=1, mtp_layers_block_type=["attention", "moe"]),
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": _nemotron_3(
        4096, 2688, 88, 32, 2, 131_072, heads=128, experts=512, chosen=22, shared=5376, hybrid_override_pattern=_SUPER,
        moe_latent_size=1024, num_nextn_predict_layers=1, mtp_hybrid_override_pattern="*E"),
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": _nemotron_3(
        8192, 5120, 108, 64, 2, 131_072, heads=256, experts=512, chosen=22, shared=10_240,
        layers_block_type=_named(_ULTRA), moe_latent_size=2048, num_nextn_predict_layers=1,
        mtp_layers_block_type=["attention", "moe"]),
}  # fmt: skip
STATE_SPACE = {
    "ai21labs/AI21-Jamba-1.5-Mini": _jamba(4096, 14_336, 32, 32, 256),
    "ai21labs/AI21-Jamba-1.5-Large": _jamba(8192, 24_576, 72, 64, 512),
    "state-spaces/mamba-130m-hf": _mamba(768, 24),
    "state-spaces/mamba-370m-hf": _mamba(1024, 48),
    "state-spaces/mamba-790m-hf": _mamba(1536, 48),
    "state-spaces/mamba-2.8b-hf": _mamba(2560, 64),
    "tiiuae/falcon-mamba-7b": _of("FalconMambaForCausalLM", "falcon_mamba", conv_kernel=4, expand=16, hidden_size=4096,
                                  intermediate_size=8192, num_hidden_layers=64, state_size=16,
                                  tie_word_embeddings=False, time_step_rank=256, use_bias=False, use_conv_bias=True,
                                  vocab_size=65_024),
    "mistralai/Mamba-Codestral-7B-v0.1": _of("Mamba2ForCausalLM", "mamba2", conv_kernel=4, expand=2, head_dim=64,
                                             hidden_size=4096, intermediate_size=8192, n_groups=8, num_heads=128,
                                             num_hidden_layers=64, state_size=128, tie_word_embeddings=False,
                                             use_bias=False, use_conv_bias=True, vocab_size=32_768),
    "state-spaces/mamba2-2.7b": _of("Mamba2ForCausalLM", "mamba2", conv_kernel=4, expand=2, head_dim=64,
                                    hidden_size=2560, n_groups=1, num_heads=80, num_hidden_layers=64, state_size=128,
                                    tie_word_embeddings=True, vocab_size=50_288),
    "ibm-ai-platform/Bamba-9B": _of("BambaForCausalLM", "bamba", **_sizes(4096, 14_336, 32, 32, 8, 128_256),
                                    attn_layer_indices=[9, 18, 27], mamba_n_heads=128, mamba_d_head=64,
                                    mamba_n_groups=1, mamba_d_state=128, mamba_d_conv=4, mamba_expand=2,
                                    mamba_conv_bias=True, mamba_proj_bias=False),
    "tiiuae/Falcon-H1-0.5B-Base": _falcon_h1(1024, 2048, 36, 8, 2, 32_784, head=64, heads=24, width=64, state=128,
                                             groups=1),
    "tiiuae/Falcon-H1-34B-Base": _falcon_h1(5120, 21_504, 72, 20, 4, 261_120, head=128, heads=32, width=128, state=256,
                                            groups=2),
    "Zyphra/Zamba2-1.2B": _zamba2(2048, 8192, 38, 32, 32, 32_000, at=(5, 11, 17, 23, 29, 35), heads=64, state=128,
                                  groups=1, blocks=1, adapter=True),
    "Zyphra/Zamba2-2.7B": _zamba2(2560, 10_240, 54, 32, 32, 32_000, at=(6, 12, 18, 24, 30, 36, 42, 47, 51), heads=80,
                                  state=64, groups=1, blocks=2, adapter=False),
    "Zyphra/Zamba2-7B": _zamba2(3584, 14_336, 81, 32, 32, 32_000, at=(6, *range(11, 81, 6)), heads=112, state=64,
                                groups=2, blocks=2, adapter=False),
    "Zyphra/Zamba-7B-v1": _of("ZambaForCausalLM", "zamba", **_sizes(3712, 14_848, 76, 16, 16, 32_000, True),
                              attention_hidden_size=7424, attention_head_dim=464, n_mamba_heads=2, mamba_d_state=16,
                              mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=232, attn_layer_offset=4,
                              attn_layer_period=6),
    "LiquidAI/LFM2-350M": _lfm2(1024, 6656, 16),
    "LiquidAI/LFM2-1.2B": _lfm2(2048, 12_288, 32),
    "LiquidAI/LFM2-8B-A1B": _of("Lfm2MoeForCausalLM", "lfm2_moe", hidden_size=2048, intermediate_size=7168,
                                moe_intermediate_size=1792, num_hidden_layers=24, num_attention_heads=32,
                                num_key_value_heads=8, num_dense_layers=2, num_experts=32, num_experts_per_tok=4,
                                conv_L_cache=3, conv_bias=False, use_expert_bias=True, vocab_size=65_536,
                                layer_types=_placed(24, "conv", "full_attention", (2, 6, 10, 14, 18, 21))),
    "google/recurrentgemma-2b": _recurrent_gemma(2560, 15_360, 26, 10),
    "google/recurrentgemma-9b": _recurrent_gemma(4096, 24_576, 38, 16),
    "RWKV/rwkv-4-1b5-pile": _rwkv(2048, 24),
    "RWKV/rwkv-4-3b-pile": _rwkv(2560, 32),
    "nvidia/Hymba-1.5B-Base": _of("HymbaForCausalLM", "hymba", **_sizes(1600, 5504, 32, 25, 5, 32_001, True),
                                  sliding_window=1024, global_attn_idx=[0, 15, 31], kv_reuse_group=_HYMBA_GROUPS,
                                  kv_weight_reuse=False, mamba_d_state=16, mamba_d_conv=4, mamba_expand=2,
                                  mamba_dt_rank=100, num_memory_tokens=128, num_experts=1),
}  # fmt: skip
MINIMAX = {
    "MiniMaxAI/MiniMax-Text-01-hf": _of("MiniMaxForCausalLM", "minimax", **_LIGHTNING, block_size=256,
                                        layer_types=(["linear_attention"] * 7 + ["full_attention"]) * 10),
    "MiniMaxAI/MiniMax-M1-80k": _of("MiniMaxM1ForCausalLM", "minimax_m1", **_LIGHTNING,
                                    attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 10),
    "MiniMaxAI/MiniMax-M2.5": _of("MiniMaxM2ForCausalLM", "minimax_m2", **_M2),
    "MiniMaxAI/MiniMax-M3": _of("MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", vision_config=_M3_VISION,
                                text_config=_of("MiniMaxM3SparseForCausalLM", "minimax_m3_vl_text", **_M3)),
}  # fmt: skip
OPEN = {
    "allenai/OLMo-1B-hf": _of("OlmoForCausalLM", "olmo", **_sizes(2048, 8192, 16, 16, 16, 50_304, True)),
    "allenai/OLMo-7B-hf": _of("OlmoForCausalLM", "olmo", **_sizes(4096, 11_008, 32, 32, 32, 50_304)),
    "allenai/OLMo-2-1124-7B": _of("Olmo2ForCausalLM", "olmo2", **_sizes(4096, 11_008, 32, 32, 32, 100_352)),
    "allenai/OLMo-2-1124-13B": _of("Olmo2ForCausalLM", "olmo2", **_sizes(5120, 13_824, 40, 40, 40, 100_352)),
    "allenai/OLMo-2-0325-32B": _of("Olmo2ForCausalLM", "olmo2", **_sizes(5120, 27_648, 64, 40, 8, 100_352)),
    "allenai/Olmo-3-1025-7B": _of("Olmo3ForCausalLM", "olmo3", **_sizes(4096, 11_008, 32, 32, 32, 100_278),
                                  sliding_window=4096, max_position_embeddings=65_536),
    "allenai/Olmo-3-1125-32B": _of("Olmo3ForCausalLM", "olmo3", **_sizes(5120, 27_648, 64, 40, 8, 100_278),
                                   sliding_window=4096, max_position_embeddings=65_536),
    "allenai/OLMoE-1B-7B-0924": _of("OlmoeForCausalLM", "olmoe", **_sizes(2048, 1024, 16, 16, 16, 50_304),
                                    num_experts=64, num_experts_per_tok=8),
    "allenai/FlexOlmo-7x7B-1T": _of("FlexOlmoForCausalLM", "flex_olmo", **_sizes(4096, 11_008, 32, 32, 32, 100_352),
                                    num_experts=7, num_experts_per_tok=7),
    "HuggingFaceTB/SmolLM3-3B": _of("SmolLM3ForCausalLM", "smollm3", **_sizes(2048, 11_008, 36, 16, 4, 128_256, True),
                                    use_sliding_window=False, no_rope_layer_interval=4),
    "swiss-ai/Apertus-8B-2509": _of("ApertusForCausalLM", "apertus", **_sizes(4096, 21_504, 32, 32, 8, 131_072),
                                    hidden_act="xielu"),
    "swiss-ai/Apertus-70B-2509": _of("ApertusForCausalLM", "apertus", **_sizes(8192, 43_008, 80, 64, 8, 131_072),
                                     hidden_act="xielu"),
    "databricks/dbrx-base": _of("DbrxForCausalLM", "dbrx", d_model=6144, n_heads=48, n_layers=40, max_seq_len=32_768,
                                vocab_size=100_352, attn_config={"clip_qkv": 8, "kv_n_heads": 8,
                                                                 "rope_theta": 500_000}, tie_word_embeddings=False,
                                ffn_config={"ffn_hidden_size": 10_752, "moe_num_experts": 16, "moe_top_k": 4}),
    "jetmoe/jetmoe-8b": _of("JetMoeForCausalLM", "jetmoe", hidden_size=2048, num_hidden_layers=24,
                            num_key_value_heads=16, kv_channels=128, intermediate_size=5632, num_local_experts=8,
                            num_experts_per_tok=2, vocab_size=32_000, tie_word_embeddings=True),
    "Snowflake/snowflake-arctic-base": _of("ArcticForCausalLM", "arctic", **_sizes(7168, 4864, 35, 56, 8, 32_000),
                                           num_local_experts=128, num_experts_per_tok=2, moe_layer_frequency=1,
                                           use_residual=True),
    "hpcai-tech/grok-1": _of("Grok1ModelForCausalLM", "grok-1", hidden_size=6144, intermediate_size=32_768,
                             num_hidden_layers=64, num_attention_heads=48, num_key_value_heads=8, num_experts=8,
                             num_experts_per_tok=2, vocab_size=131_072),
    "xai-org/grok-2": _of("Grok1ForCausalLM", "git", **_sizes(8192, 32_768, 64, 64, 8, 131_072),
                          moe_intermediate_size=16_384, head_dim=128, num_local_experts=8, num_experts_per_tok=2,
                          residual_moe=True),
}  # fmt: skip
CONFIGS: dict[str, Fields] = {**GRANITE, **NEMOTRON, **STATE_SPACE, **MINIMAX, **OPEN}
