"""Count: the Hub's for Hymba-1.5B (1,522,797,824)."""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import StateCache

NAME = "nvidia/Hymba-1.5B-Base"


def test_hymba_has_the_published_parameters():
    assert model(NAME).num_parameters() == 1_522_797_824


def test_fifteen_layers_read_another_layers_keys():
    """17 of 32 are alone or first in their group: 3 see all tokens, 14 a window and the learned tokens."""
    made = model(NAME)
    each = 5 * (64 + 128) * 2
    assert cache_bytes(made, 8192) == each * (3 * 8192 + 14 * (1024 + 128))


def test_every_layer_keeps_a_state():
    assert cache_bytes(model(NAME), 1, StateCache) == 32 * 3200 * (16 + 3) * 2


def test_without_groups_every_nth_layer_makes_keys():
    made = model(NAME, kv_reuse_group=None, kv_reuse_every_i_layer=2, sliding_window=None)
    assert cache_bytes(made, 100) == 16 * 5 * (64 + 128) * 2 * 100


def test_the_learned_tokens_are_part_of_the_model():
    less = model(NAME).num_parameters() - model(NAME, num_memory_tokens=0).num_parameters()
    assert less == 128 * 1600


def test_attention_and_mamba_share_one_projection():
    names = [weight.name for op, _ in ops(model(NAME)) for weight in op.weights()]
    assert "mamba.in_proj.weight" in names and "self_attn.q_proj.weight" not in names
    assert {"mamba.x_proj.0.weight", "mamba.dt_proj.0.bias", "mamba.A_log.0", "mamba.B_layernorm.weight"} <= set(names)


def test_experts_are_refused():
    with pytest.raises(InvalidInput, match="num_experts must be 1"):
        model(NAME, num_experts=8)
