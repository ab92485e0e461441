"""Counts: the Hub's for RWKV-4 1B5 and 3B."""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.ops import StateCache

SMALL = "RWKV/rwkv-4-1b5-pile"


@pytest.mark.parametrize(("name", "count"), [(SMALL, 1_515_106_304), ("RWKV/rwkv-4-3b-pile", 2_984_627_200)])
def test_rwkv_4_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_a_request_keeps_five_vectors_a_layer_of_which_three_are_fp32():
    """transformers' RwkvModel.forward makes its states 1, 2, 3 in fp32, the rest in the type of the embeddings."""
    assert cache_bytes(model(SMALL), 1024, StateCache) == 24 * 2048 * (3 * 4 + 2 * 2)
    assert cache_bytes(model(SMALL), 1024) == 0


def test_the_first_layer_has_a_norm_more():
    first, layer = model(SMALL).decoder.blocks
    more = {weight.name for weight in first.weights()} - {weight.name for weight in layer.weights()}
    assert more == {"pre_ln.weight", "pre_ln.bias"}


def test_sizes_that_the_config_leaves_out_follow_the_width():
    made = model(SMALL, attention_hidden_size=None, intermediate_size=None)
    assert made.num_parameters() == 1_515_106_304


def test_names_are_those_of_the_checkpoint():
    names = {weight.name for op, _ in ops(model(SMALL)) for weight in op.weights()}
    assert {"attention.time_decay", "attention.time_mix_receptance", "feed_forward.time_mix_key"} <= names
    assert {"attention.output.weight", "feed_forward.value.weight", "ln1.bias"} <= names
