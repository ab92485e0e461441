"""Command R, R+, R7B, A and Aya: counts, and the windows of Cohere 2."""

import pytest

from architectures.classic_configs import COHERE
from architectures.reading import cache_bytes
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput


@pytest.mark.parametrize("name", COHERE)
def test_a_released_command_or_aya_counts_exactly(name: str):
    assert build(COHERE[name].fields, name).num_parameters() == COHERE[name].parameters


def test_three_of_four_layers_of_cohere2_keep_only_their_window():
    made = build(COHERE["CohereForAI/c4ai-command-a-03-2025"].fields, "command-a")
    assert cache_bytes(made, 131_072) == 2 * 8 * 128 * 2 * (16 * 131_072 + 48 * 4096)
    assert made.decoder.layers[:5] == (0, 0, 0, 1, 0)


def test_command_r_keeps_every_head_and_r_plus_eight():
    assert cache_bytes(build(COHERE["CohereForAI/c4ai-command-r-v01"].fields, "r"), 1) == 40 * 2 * 64 * 128 * 2
    assert cache_bytes(build(COHERE["CohereForAI/c4ai-command-r-plus"].fields, "r+"), 1) == 64 * 2 * 8 * 128 * 2


def test_layer_types_take_the_place_of_the_pattern():
    fields = COHERE["CohereForAI/c4ai-command-r7b-12-2024"].fields | {"layer_types": ["full_attention"] * 32}
    assert cache_bytes(build(fields, "r7b"), 8192) == 32 * 2 * 8 * 128 * 2 * 8192


def test_a_kind_of_layer_that_cohere_does_not_have_is_refused():
    fields = COHERE["CohereForAI/c4ai-command-r7b-12-2024"].fields | {"layer_types": ["linear_attention"] * 32}
    with pytest.raises(
        InvalidInput, match=r"layer_types may hold full_attention, sliding_attention. Got 'linear_attention'"
    ):
        build(fields, "r7b")


def test_the_windows_of_mixtures_begin_their_pattern_after_the_dense_layers():
    fields = COHERE["CohereForAI/c4ai-command-r7b-12-2024"].fields | {
        "architectures": ["Cohere2MoeForCausalLM"],
        "model_type": "cohere2_moe",
        "num_hidden_layers": 6,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "first_k_dense_replace": 2,
    }
    made = build(fields, "cohere2-moe")
    assert [made.decoder.blocks[layer].name for layer in made.decoder.layers] == [
        "dense full_attention",
        "dense full_attention",
        "sliding_attention",
        "sliding_attention",
        "sliding_attention",
        "full_attention",
    ]
