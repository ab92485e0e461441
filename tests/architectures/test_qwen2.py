"""Counts: safetensors totals of the Hub for Qwen/Qwen2.5-*; the class of transformers gives the same."""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Qwen/Qwen2.5-0.5B", 494_032_768),
        ("Qwen/Qwen2.5-1.5B", 1_543_714_304),
        ("Qwen/Qwen2.5-7B", 7_615_616_512),
        ("Qwen/Qwen2.5-72B", 72_706_203_648),
    ],
)
def test_qwen2_5_has_the_parameters_that_the_hub_counts(name: str, count: int):
    assert model(name).num_parameters() == count


def test_queries_keys_and_values_have_biases_and_the_output_has_none():
    biases = {
        weight.name
        for op, _ in ops(model("Qwen/Qwen2.5-0.5B"))
        for weight in op.weights()
        if weight.name.endswith("bias")
    }
    assert biases == {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"}


def test_no_layer_slides_unless_use_sliding_window_says_so():
    assert all(op.window is None for op, _ in ops(model("Qwen/Qwen2.5-7B")) if isinstance(op, Attention))


def test_layers_from_max_window_layers_on_slide():
    made = model("Qwen/Qwen2.5-7B", use_sliding_window=True, sliding_window=1000, max_window_layers=20)
    windows = [(op.window, count) for op, count in ops(made) if isinstance(op, Attention)]
    assert windows == [(None, 20), (1000, 8)]
    assert cache_bytes(made, 5000) == 2 * 2 * 4 * 128 * (20 * 5000 + 8 * 1000)


def test_sliding_needs_to_know_from_which_layer_on():
    with pytest.raises(InvalidInput, match="max_window_layers"):
        model("Qwen/Qwen2.5-7B", use_sliding_window=True, max_window_layers=None)


def test_a_layer_list_that_is_too_short_is_refused():
    with pytest.raises(InvalidInput, match="28 items"):
        model("Qwen/Qwen2.5-7B", layer_types=["full_attention"] * 3)


def test_a_kind_of_layer_that_nobody_knows_is_refused():
    with pytest.raises(InvalidInput, match="full_attention, sliding_attention"):
        model("Qwen/Qwen2.5-7B", layer_types=["local"] * 28)
