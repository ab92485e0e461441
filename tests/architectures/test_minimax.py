"""Counts: the Hub's for MiniMax-M1 and M2, transformers' class for MiniMax-Text-01-hf.

Published: 456B with 45.9B active (table and head not counted), 230B with 10B active.
"""

import pytest

from architectures.modern_b_configs import CONFIGS
from architectures.reading import GIB, billions, cache_bytes, model, ops, without_table
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention, LightningAttention, StateCache

TEXT_01 = "MiniMaxAI/MiniMax-Text-01-hf"
M1 = "MiniMaxAI/MiniMax-M1-80k"
M2 = "MiniMaxAI/MiniMax-M2.5"


@pytest.mark.parametrize(("name", "count"), [(TEXT_01, 456_385_554_816), (M1, 456_089_655_296), (M2, 228_689_764_864)])
def test_minimax_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_active_parameters_are_the_published_ones():
    table = 200_064 * 6144
    assert billions(model(M1).num_active_parameters() - 2 * table, 1) == 45.9
    assert billions(without_table(model(M2))) == 10


def test_the_class_of_transformers_stores_tables_of_decays_that_the_original_computes():
    decays = 64 * (1 + 256 + 256 + 256 * 256)
    assert model(TEXT_01).num_parameters() - model(M1).num_parameters() == 70 * decays


def test_seven_layers_of_eight_are_lightning_attention():
    kinds = {type(op): count for op, count in ops(model(M1)) if isinstance(op, Attention | LightningAttention)}
    assert kinds == {LightningAttention: 70, Attention: 10}


def test_m1_keeps_keys_and_values_of_ten_layers_and_a_state_of_the_others():
    made = model(M1)
    assert cache_bytes(made, 1_000_000) == 10 * 2 * 8 * 128 * 2 * 1_000_000
    assert cache_bytes(made, 1_000_000, StateCache) == 70 * 64 * 128 * 128 * 2


def test_m2_keeps_31_gib_of_131072_tokens():
    assert cache_bytes(model(M2), 131_072) == 62 * 2 * 8 * 128 * 2 * 131_072 == 31 * GIB


def test_m2_has_no_draft_layers_though_its_config_announces_them():
    assert CONFIGS[M2]["num_mtp_modules"] == 3
    assert [branch.kind for branch in model(M2).branches] == ["decoder"]


@pytest.mark.parametrize(
    ("changes", "less"),
    [
        ({"use_qk_norm": False}, 62 * (48 + 8) * 128),
        ({"qk_norm_type": "per_head"}, 62 * (48 + 8 - 2) * 128),
        ({"use_routing_bias": False}, 62 * 256),
    ],
)
def test_norms_of_queries_and_keys_and_the_bias_of_the_router_may_be_left_out(changes: dict[str, object], less: int):
    assert model(M2).num_parameters() - model(M2, **changes).num_parameters() == less


def test_a_quantised_copy_of_m2_has_the_same_parameters():
    """The fields of quantization that the released FP8 model and NVIDIA's NVFP4 copy add."""
    fp8 = {"quant_method": "fp8", "fmt": "float8_e4m3fn", "weight_block_size": [128, 128]}
    nvfp4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "model.layers.*self_attn*"]}
    assert {model(M2, quantization_config=each).num_parameters() for each in (fp8, nvfp4)} == {228_689_764_864}


def test_layers_may_be_named_or_numbered_and_are_every_second_by_default():
    numbered = model(M1, attn_type_list=[0, 1] * 40)
    assert numbered.num_parameters() == model(M1, attn_type_list=None).num_parameters()
    names = ["linear_attention", "full_attention"] * 40
    assert numbered.num_parameters() == model(M1, attn_type_list=None, layer_types=names).num_parameters()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (M1, {"attn_type_list": [0] * 79 + [2]}, "attn_type_list may hold 0 .lightning. and 1 .softmax."),
        (M1, {"attn_type_list": [0] * 79}, "attn_type_list"),
        (M1, {"shared_intermediate_size": 1024}, "shared_intermediate_size must be 0"),
        (M2, {"qk_norm_type": "per_token"}, "qk_norm_type must be one of per_layer, per_head. Got 'per_token'"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(name: str, changes: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        model(name, **changes)
