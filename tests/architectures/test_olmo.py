"""Counts: the Hub's for OLMo 2 13B, 32B and OLMo 3 7B, 32B, transformers' classes for the others."""

import pytest

from architectures.reading import GIB, cache_bytes, model, ops
from tonnage.architectures import build
from tonnage.ops import Attention, GatedDeltaNet, StateCache

THREE = "allenai/Olmo-3-1025-7B"
KEYS = 2 * 32 * 128 * 2  # of a layer of the 7B, which has no groups


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("allenai/OLMo-1B-hf", 1_176_764_416),
        ("allenai/OLMo-7B-hf", 6_888_095_744),
        ("allenai/OLMo-2-1124-7B", 7_298_617_344),
        ("allenai/OLMo-2-1124-13B", 13_716_198_400),
        ("allenai/OLMo-2-0325-32B", 32_234_279_936),
        (THREE, 7_298_011_136),
        ("allenai/Olmo-3-1125-32B", 32_233_522_176),
    ],
)
def test_olmo_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_olmo_1_has_norms_without_weights():
    assert not [
        weight for op, _ in ops(model("allenai/OLMo-7B-hf")) for weight in op.weights() if weight.part == "norm"
    ]


def test_olmo_2_has_norms_after_its_sublayers_and_over_all_queries_and_keys():
    norms = [w for op, _ in ops(model("allenai/OLMo-2-0325-32B")) for w in op.weights() if w.part == "norm"]
    assert {weight.name: weight.num_parameters for weight in norms} == {
        "self_attn.q_norm.weight": 5120,
        "self_attn.k_norm.weight": 1024,
        "post_attention_layernorm.weight": 5120,
        "post_feedforward_layernorm.weight": 5120,
    }


def test_olmo_2_7b_keeps_64_gib_of_131072_tokens():
    assert cache_bytes(model("allenai/OLMo-2-1124-7B"), 131_072) == 64 * GIB


def test_three_layers_of_four_of_olmo_3_keep_4096_tokens():
    assert cache_bytes(model(THREE), 65_536) == KEYS * (8 * 65_536 + 24 * 4096)


def test_layers_of_olmo_3_may_be_named():
    made = model(THREE, layer_types=["full_attention"] * 32)
    assert cache_bytes(made, 65_536) == KEYS * 32 * 65_536


def test_three_layers_of_four_of_olmo_hybrid_are_gated_delta_nets():
    fields = {
        "architectures": ["OlmoHybridForCausalLM"],
        "hidden_size": 3840,
        "intermediate_size": 11_008,
        "num_hidden_layers": 32,
        "num_attention_heads": 30,
        "vocab_size": 100_352,
    }
    made = build(fields, "olmo hybrid")
    assert made.num_parameters() == 7_430_870_688
    kinds = {type(op): count for op, count in ops(made) if isinstance(op, Attention | GatedDeltaNet)}
    assert kinds == {GatedDeltaNet: 24, Attention: 8}
    assert cache_bytes(made, 1, StateCache, "recurrent") == 24 * 30 * 96 * 192 * 4
