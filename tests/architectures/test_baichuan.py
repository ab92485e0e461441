"""Baichuan: counts of its README, and the context under its two names."""

import pytest

from architectures.classic_configs import BAICHUAN
from tonnage.architectures import build


@pytest.mark.parametrize("name", BAICHUAN)
def test_a_released_baichuan_counts_exactly(name: str):
    assert build(BAICHUAN[name].fields, name).num_parameters() == BAICHUAN[name].parameters


def test_the_13b_names_its_context_model_max_length():
    assert build(BAICHUAN["baichuan-inc/Baichuan-13B-Base"].fields, "baichuan").context == 4096


def test_queries_keys_and_values_are_one_matrix():
    made = build(BAICHUAN["baichuan-inc/Baichuan-7B"].fields, "baichuan")
    packed = [
        weight.num_parameters for weight in made.decoder.blocks[0].weights() if weight.name == "self_attn.W_pack.weight"
    ]
    assert sum(packed) == 3 * 4096 * 4096
