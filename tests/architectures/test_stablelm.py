"""StableLM and Persimmon: counts, and the norms of the 12B."""

import pytest

from architectures.classic_configs import STABLELM
from architectures.reading import cache_bytes
from tonnage.architectures import build


@pytest.mark.parametrize("name", STABLELM)
def test_a_released_stablelm_or_persimmon_counts_exactly(name: str):
    assert build(STABLELM[name].fields, name).num_parameters() == STABLELM[name].parameters


def test_the_12b_has_one_norm_a_layer_and_a_vector_for_each_head():
    made = build(STABLELM["stabilityai/stablelm-2-12b"].fields, "stablelm-2-12b")
    norms = {weight.name: weight.num_parameters for weight in made.decoder.blocks[0].weights() if weight.part == "norm"}
    assert norms == {
        "input_layernorm.weight": 5120,
        "input_layernorm.bias": 5120,
        "self_attn.q_layernorm.norms.weight": 32 * 160,
        "self_attn.k_layernorm.norms.weight": 8 * 160,
    }


def test_a_token_of_the_12b_keeps_8_heads_of_160():
    assert cache_bytes(build(STABLELM["stabilityai/stablelm-2-12b"].fields, "stablelm"), 1) == 40 * 2 * 8 * 160 * 2
