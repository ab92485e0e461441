"""Families with recurrent layers and open models against their classes of transformers, built on the meta device.

Draft layers (multi-token prediction) are in the checkpoints and not in the classes, so they are left out here. Classes
that transformers lacks are proven by the counts of their checkpoints: DeciLM, MiniMax-M1, Hymba, Arctic and Grok.
"""

import pytest

from architectures.modern_b_configs import CONFIGS
from oracles.transformers_count import count, known
from tonnage.architectures import build

LACKING = {
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    "nvidia/Hymba-1.5B-Base",
    "MiniMaxAI/MiniMax-M1-80k",
    "Snowflake/snowflake-arctic-base",
    "hpcai-tech/grok-1",
    "xai-org/grok-2",
}
M3_KINDS = ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"]


def test_transformers_lacks_the_classes_that_are_left_out():
    assert {name for name, fields in CONFIGS.items() if not known(fields)} == LACKING


@pytest.mark.parametrize("name", [name for name in CONFIGS if name not in LACKING])
def test_a_config_has_as_many_parameters_as_its_class(name: str):
    assert build(CONFIGS[name], name).num_parameters() == count(CONFIGS[name])


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("ApertusForCausalLM", {"attention_bias": True}),
        ("BambaForCausalLM", {"attn_layer_indices": [2, 5], "num_hidden_layers": 8, "mlp_bias": True}),
        ("DbrxForCausalLM", {"attn_config": {"kv_n_heads": 2, "rope_theta": 10_000}}),
        ("FalconH1ForCausalLM", {"mamba_rms_norm": True, "projectors_bias": True, "mamba_d_ssm": 1024}),
        ("FalconMambaForCausalLM", {"use_bias": True}),
        ("FlexOlmoForCausalLM", {}),
        ("GraniteForCausalLM", {"attention_bias": True, "mlp_bias": True}),
        ("GraniteMoeForCausalLM", {"attention_bias": True}),
        ("GraniteMoeHybridForCausalLM", {"mamba_proj_bias": True, "hidden_size": 4096}),
        ("GraniteMoeSharedForCausalLM", {"shared_intermediate_size": 512}),
        ("GraniteMoeSWAForCausalLM", {}),
        ("GraniteSWAForCausalLM", {}),
        ("JambaForCausalLM", {"num_experts": 1}),
        ("JambaForCausalLM", {"mamba_dt_rank": "auto", "mamba_proj_bias": True}),
        ("JetMoeForCausalLM", {}),
        ("Lfm2ForCausalLM", {"conv_bias": True, "block_auto_adjust_ff_dim": False}),
        ("Lfm2MoeForCausalLM", {"use_expert_bias": False, "num_dense_layers": 1, "layer_types": ["conv"] * 32}),
        ("MambaForCausalLM", {"hidden_size": 770, "use_bias": True, "use_conv_bias": False}),
        ("Mamba2ForCausalLM", {"use_bias": True}),
        ("MiniMaxForCausalLM", {"num_hidden_layers": 5}),
        ("MiniMaxM2ForCausalLM", {}),
        ("MiniMaxM3VLForCausalLM", {"num_hidden_layers": 3, "layer_types": M3_KINDS, "index_n_heads": 2}),
        ("NemotronForCausalLM", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 8}),
        ("NemotronHForCausalLM", {"use_bias": True, "use_conv_bias": False, "moe_latent_size": 512}),
        ("OlmoForCausalLM", {"attention_bias": True}),
        ("Olmo2ForCausalLM", {"attention_bias": True}),
        ("Olmo3ForCausalLM", {"num_key_value_heads": 8}),
        ("OlmoHybridForCausalLM", {}),
        ("OlmoeForCausalLM", {"attention_bias": True}),
        ("RecurrentGemmaForCausalLM", {"lru_width": 5120}),
        ("RwkvForCausalLM", {"attention_hidden_size": 2048}),
        ("SmolLM3ForCausalLM", {"mlp_bias": True, "attention_bias": True}),
        ("ZambaForCausalLM", {}),
        ("Zamba2ForCausalLM", {"use_shared_attention_adapter": True, "add_bias_linear": True}),
    ],
)
def test_a_config_as_transformers_saves_it_has_as_many_parameters_as_its_class(kind: str, fields: dict[str, object]):
    import transformers

    config_class = getattr(transformers, kind).config_class
    saved = {**config_class(**fields).to_dict(), "architectures": [kind], "model_type": config_class.model_type}
    assert build(saved, kind).num_parameters() == count(saved)
