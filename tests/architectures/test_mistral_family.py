"""Mixtral, Ministral, Ministral 3 and Mistral Small 4. Counts: the Hub's for Mixtral, the classes of
transformers 5.23 else.
"""

import pytest

from architectures.reading import billions, cache_bytes, model, ops
from tonnage.ops import Attention, LatentAttention


@pytest.mark.parametrize(
    ("name", "count", "active"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704, 12.9),
        ("mistralai/Mixtral-8x22B-v0.1", 140_620_634_112, 39.2),
        ("mistralai/Ministral-3-3B text", 3_429_006_336, 3.4),
        ("mistralai/Ministral-3-8B text", 8_489_553_920, 8.5),
        ("mistralai/Mistral-Small-4-119B text", 118_972_826_624, 6.6),
    ],
)
def test_mistral_models_have_the_published_parameters(name: str, count: int, active: float):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(made.num_active_parameters(), 1) == active


def test_mixtral_has_the_checkpoints_names():
    names = {weight.name for op, _ in ops(model("mistralai/Mixtral-8x7B-v0.1")) for weight in op.weights()}
    assert {"block_sparse_moe.gate.weight", "block_sparse_moe.experts.w1.weight"} <= names


def test_mistral_small_4_caches_a_latent_and_has_no_correction_bias():
    made = model("mistralai/Mistral-Small-4-119B text")
    assert cache_bytes(made, 1000) == 36 * (256 + 64) * 2 * 1000
    assert not any("correction" in weight.name for weight, _ in made.decoder.weighted())
    assert any(isinstance(op, LatentAttention) for op, _ in ops(made))


def test_some_layers_of_ministral_may_slide():
    made = model(
        "mistralai/Ministral-3-8B text",
        architectures=["MinistralForCausalLM"],
        sliding_window=32_768,
        layer_types=["full_attention", "sliding_attention"] * 17,
    )
    assert {op.window: count for op, count in ops(made) if isinstance(op, Attention)} == {None: 17, 32_768: 17}


def test_ministral_without_a_list_of_layers_slides_in_all_if_it_has_a_window():
    changes = {"architectures": ["MinistralForCausalLM"], "sliding_window": 4096}
    made = model("mistralai/Ministral-3-8B text", **changes)
    assert {op.window for op, _ in ops(made) if isinstance(op, Attention)} == {4096}
