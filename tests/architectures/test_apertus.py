"""Counts: transformers' class with the configs of Apertus 8B and 70B."""

import pytest

from architectures.reading import GIB, cache_bytes, model, ops

EIGHT = "swiss-ai/Apertus-8B-2509"


@pytest.mark.parametrize(("name", "count"), [(EIGHT, 8_053_338_240), ("swiss-ai/Apertus-70B-2509", 70_599_864_640)])
def test_apertus_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_the_activation_holds_four_numbers_a_layer():
    assert model(EIGHT).num_parameters() - model(EIGHT, hidden_act="silu").num_parameters() == 32 * 4


def test_a_feed_forward_has_two_matrices():
    names = {
        weight.name for op, _ in ops(model(EIGHT)) for weight in op.weights() if weight.linear and weight.part == "mlp"
    }
    assert names == {"mlp.up_proj.weight", "mlp.down_proj.weight"}


def test_apertus_8b_keeps_8_gib_of_65536_tokens():
    assert cache_bytes(model(EIGHT), 65_536) == 8 * GIB
