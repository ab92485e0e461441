"""Counts: the Hub's for Granite 3.3 (safetensors totals), else transformers' classes.

Active parameters: the names of the models (a400m, a800m) and their cards.
"""

import pytest

from architectures.reading import GIB, cache_bytes, model, ops, without_table
from tonnage.architectures import build
from tonnage.ops import Attention, MoE, TokenCache


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("ibm-granite/granite-3.3-2b-instruct", 2_533_539_840),
        ("ibm-granite/granite-3.3-8b-instruct", 8_170_864_640),
        ("ibm-granite/granite-3.0-1b-a400m-base", 1_334_628_352),
        ("ibm-granite/granite-3.0-3b-a800m-base", 3_298_793_472),
        ("ibm-research/moe-7b-1b-active-shared-experts", 6_370_891_776),
    ],
)
def test_granite_3_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("ibm-granite/granite-3.0-1b-a400m-base", 428_658_688),
        ("ibm-granite/granite-3.0-3b-a800m-base", 882_874_368),
        ("ibm-research/moe-7b-1b-active-shared-experts", 1_086_068_736),
    ],
)
def test_a_token_passes_through_the_parameters_that_the_name_says(name: str, active: int):
    assert without_table(model(name)) == active


def test_granite_3_3_8b_keeps_20_gib_of_keys_and_values_for_131072_tokens():
    assert cache_bytes(model("ibm-granite/granite-3.3-8b-instruct"), 131_072) == 20 * GIB


def test_experts_are_stored_with_gate_and_up_in_one_tensor():
    experts = next(op for op, _ in ops(model("ibm-granite/granite-3.0-1b-a400m-base")) if isinstance(op, MoE))
    names = {weight.name for weight in experts.weights()}
    assert names == {
        "block_sparse_moe.router.layer.weight",
        "block_sparse_moe.input_linear.weight",
        "block_sparse_moe.output_linear.weight",
    }


def test_a_shared_expert_is_stored_beside_the_experts():
    experts = next(op for op, _ in ops(model("ibm-research/moe-7b-1b-active-shared-experts")) if isinstance(op, MoE))
    shared = [(weight.name, weight.num_parameters) for weight in experts.weights() if "shared" in weight.name]
    gate = up = ("shared_mlp.input_linear.weight", 1024 * 1536)
    assert shared == [gate, up, ("shared_mlp.output_linear.weight", 1024 * 1536)]


def test_the_mixture_without_shared_expert_is_that_of_the_config_without_the_field():
    name = "ibm-research/moe-7b-1b-active-shared-experts"
    less = model(name).num_parameters() - model(name, shared_intermediate_size=None).num_parameters()
    assert less == 40 * 3 * 1024 * 1536


@pytest.mark.parametrize(("kind", "inner"), [("GraniteSWAForCausalLM", 8192), ("GraniteMoeSWAForCausalLM", 512)])
def test_three_layers_of_four_slide_and_every_head_has_a_sink(kind: str, inner: int):
    fields = {
        "architectures": [kind],
        "hidden_size": 2048,
        "intermediate_size": inner,
        "num_hidden_layers": 8,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 49_152,
    }
    made = build(fields, "granite")
    caches = [cache for op, count in ops(made) for cache in op.caches() * count]
    assert sorted(cache.window or 0 for cache in caches if isinstance(cache, TokenCache)) == [0, 0] + [128] * 6
    sinks = [
        weight for op, _ in ops(made) if isinstance(op, Attention) for weight in op.weights() if "sink" in weight.name
    ]
    assert {weight.num_parameters for weight in sinks} == {32}
