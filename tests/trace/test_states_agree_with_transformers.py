"""What a request keeps, against the cache that transformers makes when a small model of the family reads a few tokens.

transformers keeps one column of a convolution more than vLLM, whose layout is counted here.
"""

from typing import Any

import pytest

from architectures.reading import caches
from tonnage.architectures import Model, build
from tonnage.ops import StateCache, TokenCache

TOKENS = 7
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
KINDS = ["linear_attention", "full_attention"] * 2
MAMBA_2 = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 2}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("BambaForCausalLM", {**MAMBA_2, "attn_layer_indices": [1]}),
        ("FalconH1ForCausalLM", {**MAMBA_2, "mamba_d_ssm": 128}),
        ("FalconMambaForCausalLM", {"intermediate_size": 128, "time_step_rank": 4}),
        ("GraniteMoeHybridForCausalLM", {**MAMBA_2, "layer_types": ["mamba", "attention"] * 2}),
        ("JambaForCausalLM", {"mamba_dt_rank": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2}),
        ("Lfm2ForCausalLM", {"full_attn_idxs": [1, 3], "block_ff_dim": 96}),
        ("Lfm2MoeForCausalLM", {"layer_types": ["conv", "full_attention"] * 2, "num_experts": 4}),
        ("MambaForCausalLM", {"intermediate_size": 128, "time_step_rank": 4}),
        ("Mamba2ForCausalLM", {"num_heads": 8, "head_dim": 16, "n_groups": 2}),
        ("MiniMaxForCausalLM", {"layer_types": KINDS, "head_dim": 16}),
        (
            "MiniMaxM3VLForCausalLM",
            {
                "layer_types": ["full_attention", "minimax_m3_sparse"] * 2,
                "mlp_layer_types": ["dense", "sparse"] * 2,
                "head_dim": 16,
                "num_local_experts": 4,
                "dense_intermediate_size": 96,
                "index_head_dim": 32,
            },
        ),
        (
            "NemotronHForCausalLM",
            {
                "layers_block_type": ["mamba", "attention", "mlp", "moe"],
                "mamba_num_heads": 8,
                "mamba_head_dim": 16,
                "head_dim": 16,
                "n_groups": 2,
                "moe_intermediate_size": 32,
                "moe_shared_expert_intermediate_size": 32,
            },
        ),
        ("OlmoHybridForCausalLM", {"layer_types": KINDS}),
        (
            "Qwen3NextForCausalLM",
            {
                "layer_types": KINDS,
                "linear_num_key_heads": 2,
                "linear_num_value_heads": 4,
                "linear_key_head_dim": 16,
                "linear_value_head_dim": 16,
                "head_dim": 16,
                "num_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 32,
                "shared_expert_intermediate_size": 32,
            },
        ),
        (
            "ZambaForCausalLM",
            {
                "attention_hidden_size": 128,
                "attention_head_dim": 32,
                "num_key_value_heads": 4,
                "mamba_dt_rank": 4,
                "attn_layer_period": 2,
                "attn_layer_offset": 1,
                "num_hidden_layers": 8,
            },
        ),
        (
            "Zamba2ForCausalLM",
            {
                "n_mamba_heads": 8,
                "layers_block_type": ["mamba", "hybrid"] * 2,
                "num_key_value_heads": 4,
                "hybrid_layer_ids": [1, 3],
                "num_mem_blocks": 2,
            },
        ),
    ],
)
def test_a_request_keeps_what_transformers_caches(kind: str, fields: dict[str, Any]):
    import transformers

    config_class = getattr(transformers, kind).config_class
    saved = {**config_class(**{**SMALL, **fields}).to_dict(), "architectures": [kind]}
    made = build(saved, kind)
    tokens, recurrent, columns = cached(kind, saved)
    assert tokens == kept(made, TokenCache)
    assert recurrent == kept(made, StateCache, "recurrent")
    assert columns == kept(made, StateCache, "convolution")


def test_a_state_that_is_counted_in_fp32_is_kept_in_fp32():
    import torch
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

    config = Qwen3NextConfig(**{**SMALL, "layer_types": KINDS, "head_dim": 16})
    made = Qwen3NextForCausalLM(config).to(torch.bfloat16).eval()
    layer = made(torch.arange(TOKENS)[None], use_cache=True).past_key_values.layers[0]
    assert layer.recurrent_states[0].dtype == torch.float32
    assert layer.conv_states[0].dtype == torch.bfloat16


def test_rwkv_keeps_three_vectors_a_layer_in_fp32_and_two_in_the_type_of_the_model():
    import torch
    from transformers import RwkvConfig, RwkvForCausalLM

    fields = {"hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 32, "context_length": 64}
    with torch.no_grad():
        output = (
            RwkvForCausalLM(RwkvConfig(**fields)).to(torch.bfloat16).eval()(torch.arange(TOKENS)[None], use_cache=True)
        )
    made = build({**fields, "architectures": ["RwkvForCausalLM"]}, "rwkv")
    wide = sum(state.numel() for state in output.state if state.dtype == torch.float32)
    narrow = sum(state.numel() for state in output.state if state.dtype == torch.bfloat16)
    assert (wide, narrow) == (kept(made, StateCache, "recurrent"), kept(made, StateCache, "last token"))


def test_recurrent_gemma_keeps_its_states_in_fp32_and_its_columns_in_the_type_of_the_model():
    import torch
    from transformers import RecurrentGemmaConfig, RecurrentGemmaForCausalLM

    fields = {**SMALL, "num_key_value_heads": 1, "lru_width": 96, "attention_window_size": 16}
    model = RecurrentGemmaForCausalLM(RecurrentGemmaConfig(**fields)).to(torch.bfloat16).eval()
    with torch.no_grad():
        model(torch.arange(TOKENS)[None], use_cache=True)
    found = [state for module in model.modules() for state in vars(module).values() if isinstance(state, torch.Tensor)]
    made = build({**fields, "architectures": ["RecurrentGemmaForCausalLM"]}, "recurrent gemma")
    wide = sum(state.numel() for state in found if state.dtype == torch.float32)
    narrow = sum(state.numel() for state in found if state.dtype == torch.bfloat16)
    assert (wide, narrow) == (kept(made, StateCache, "recurrent"), kept(made, StateCache, "convolution"))


def kept(made: Model, kind: type, name: str = "") -> int:
    tokens = TOKENS if kind is TokenCache else 1
    return sum(
        count * cache.elements * tokens
        for cache, count in caches(made)
        if isinstance(cache, kind) and name in cache.name
    )


def cached(kind: str, saved: dict[str, Any]) -> tuple[int, int, int]:
    """Numbers in keys and values, in recurrent states, and in the convolutions' columns but one."""
    import torch
    import transformers

    model_class = getattr(transformers, kind)
    made = model_class(model_class.config_class.from_dict(saved)).eval()
    with torch.no_grad():
        output = made(torch.arange(TOKENS)[None], use_cache=True)
    cache = output.get("past_key_values") or output.get("cache_params")
    tokens = columns = 0
    recurrent = sum(len(state) and state.numel() for state in getattr(cache, "linear_cache", []))
    for layer in cache.layers:
        if getattr(layer, "keys", None) is not None:
            tokens += layer.keys.numel() + layer.values.numel()
        if getattr(layer, "idx_keys", None) is not None:
            tokens += layer.idx_keys.numel()
        for state in getattr(layer, "recurrent_states", {}).values():
            recurrent += 0 if state is None else state.numel()
        for state in getattr(layer, "conv_states", {}).values():
            columns += 0 if state is None else state.numel() // state.shape[-1] * (state.shape[-1] - 1)
    return tokens, recurrent, columns
