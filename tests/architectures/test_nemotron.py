"""Counts: transformers' class for Nemotron; for Llama-3.3-Nemotron-Super-49B the sum over its 80 block_configs."""

import pytest

from architectures.modern_b_configs import CONFIGS
from architectures.reading import GIB, cache_bytes, model, ops
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Linear

SUPER = "nvidia/Llama-3_3-Nemotron-Super-49B-v1"
HIDDEN = 8192


def changed(index: int, part: str, **changes: object) -> dict[str, list[dict[str, dict[str, object]]]]:
    """block_configs where one layer's attention or feed-forward has other fields."""
    blocks = [{name: dict(fields) for name, fields in block.items()} for block in CONFIGS[SUPER]["block_configs"]]
    blocks[index][part] |= changes
    return {"block_configs": blocks}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("nvidia/Minitron-4B-Base", 4_190_509_056),
        ("nvidia/Nemotron-4-340B-Base", 341_029_195_776),
        (SUPER, 49_867_145_216),
    ],
)
def test_nemotron_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_nemotron_has_two_matrices_a_feed_forward_and_norms_with_bias():
    names = {weight.name for op, _ in ops(model("nvidia/Minitron-4B-Base")) for weight in op.weights()}
    assert {"mlp.up_proj.weight", "mlp.down_proj.weight", "input_layernorm.bias"} <= names
    assert "mlp.gate_proj.weight" not in names


def test_the_49b_has_attention_in_49_of_80_layers_and_keeps_24_5_gib():
    assert cache_bytes(model(SUPER), 131_072) == 49 * 2 * 8 * 128 * 2 * 131_072 == 24.5 * GIB


def test_a_feed_forward_is_two_thirds_of_its_multiple_of_the_width_rounded_up_to_256():
    widths = {
        weight.rows for op, _ in ops(model(SUPER)) for weight in op.weights() if weight.name == "mlp.up_proj.weight"
    }
    assert {28_672, 14_336, 7168, 2816, 5632, 17_920} == widths


def test_a_layer_without_attention_has_no_norm_for_it():
    names = [{weight.name for weight in block.weights()} for block in model(SUPER).decoder.blocks]
    without = [each for each in names if "self_attn.q_proj.weight" not in each]
    assert without and not any("input_layernorm.weight" in each for each in without)


def test_a_layer_without_feed_forward_is_smaller_by_it_and_its_norm():
    less = model(SUPER).num_parameters() - model(SUPER, **changed(0, "ffn", no_op=True)).num_parameters()
    assert less == 3 * HIDDEN * 28_672 + HIDDEN


def test_one_matrix_may_stand_for_attention_or_feed_forward():
    made = model(SUPER, **changed(0, "attention", replace_with_linear=True))
    assert [op.name for op, _ in ops(made) if isinstance(op, Linear)] == ["self_attn.linear_attn"]
    less = model(SUPER).num_parameters() - made.num_parameters()
    assert less == 2 * HIDDEN * 64 * 128 + 2 * HIDDEN * 8 * 128 - HIDDEN**2
    made = model(SUPER, **changed(0, "ffn", replace_with_linear=True))
    assert [op.name for op, _ in ops(made) if isinstance(op, Linear)] == ["mlp.linear_mlp"]


def test_a_layer_with_a_window_keeps_it_and_the_sinks():
    made = model(SUPER, **changed(0, "attention", window_length=8192, num_sink_tokens=64))
    assert cache_bytes(made, 131_072) == 2 * 8 * 128 * 2 * (48 * 131_072 + 8256)


def test_a_feed_forward_may_be_given_by_its_width():
    made = model(SUPER, **changed(0, "ffn", ffn_mult=None, intermediate_size=28_672))
    assert made.num_parameters() == model(SUPER).num_parameters()


def test_decilm_says_key_heads_layer_by_layer():
    heads = [4, 4, 2, 1]
    fields = {
        "architectures": ["DeciLMForCausalLM"],
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 4,
        "num_attention_heads": 32,
        "num_key_value_heads_per_layer": heads,
        "vocab_size": 32_000,
    }
    attention = 4 * 2 * 4096**2 + 2 * 4096 * 128 * sum(heads)
    assert build(fields, "deci").num_parameters() == 2 * 32_000 * 4096 + attention + 4 * 3 * 4096 * 14_336 + 9 * 4096
    with pytest.raises(InvalidInput, match="KV heads must divide num_attention_heads"):
        build(fields | {"num_key_value_heads_per_layer": [4, 4, 3, 1]}, "deci")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (changed(0, "attention", n_heads_in_group=24), r"n_heads_in_group must divide num_attention_heads \(64\)"),
        (changed(3, "attention", n_heads_in_group="eight"), r"block_configs\[3\].*n_heads_in_group"),
        ({"num_hidden_layers": 79}, "block_configs"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(changes: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        model(SUPER, **changes)
