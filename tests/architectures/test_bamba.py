"""Count: transformers' class with the config of Bamba-9B."""

from architectures.reading import cache_bytes, model, ops
from tonnage.ops import Attention, Mamba2, StateCache

NAME = "ibm-ai-platform/Bamba-9B"


def test_bamba_has_the_published_parameters():
    assert model(NAME).num_parameters() == 9_780_235_392


def test_layers_9_18_and_27_are_of_attention():
    kinds = {type(op): count for op, count in ops(model(NAME)) if isinstance(op, Attention | Mamba2)}
    assert kinds == {Mamba2: 29, Attention: 3}
    assert cache_bytes(model(NAME), 4096) == 3 * 2 * 8 * 128 * 2 * 4096


def test_without_indices_no_layer_keeps_keys():
    assert cache_bytes(model(NAME, attn_layer_indices=None), 4096) == 0


def test_the_state_is_counted_once_a_mamba_layer():
    assert cache_bytes(model(NAME), 1, StateCache) == 29 * (128 * 64 * 128 + (8192 + 2 * 128) * 3) * 2
