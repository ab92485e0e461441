"""Counts: Gemma4ForCausalLM of transformers 5.23, which the multimodal class contains."""

import pytest

from architectures.reading import billions, model, ops
from tonnage.ops import Attention, MoE


@pytest.mark.parametrize(
    ("name", "count", "active"),
    [("google/gemma-4-26B-A4B text", 25_233_141_790, 3.8), ("google/gemma-4-31B text", 30_697_345_340, 30.7)],
)
def test_gemma_4_has_the_parameters_of_the_class(name: str, count: int, active: float):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(made.num_active_parameters(), 1) == active


def test_full_layers_have_fewer_and_wider_heads_and_use_keys_as_values():
    mixers = {op.window: op for op, _ in ops(model("google/gemma-4-26B-A4B text")) if isinstance(op, Attention)}
    full, sliding = mixers[None], mixers[1024]
    assert (full.kv_heads, full.head_dim, full.key_is_value) == (2, 512, True)
    assert (sliding.kv_heads, sliding.head_dim, sliding.key_is_value) == (8, 256, False)
    assert not any("v_proj" in weight.name for weight in full.weights())


def test_keys_and_values_are_cached_apart_even_where_they_come_from_one_matrix():
    full = next(
        op for op, _ in ops(model("google/gemma-4-31B text")) if isinstance(op, Attention) and op.window is None
    )
    assert full.caches()[0].elements == 2 * 4 * 512


def test_the_experts_run_beside_a_dense_feed_forward():
    block = model("google/gemma-4-26B-A4B text").decoder.blocks[0]
    names = {weight.name for weight in block.weights()}
    assert {"mlp.up_proj.weight", "router.proj.weight", "experts.down_proj.weight", "router.per_expert_scale"} <= names


def test_a_dense_size_has_no_router():
    assert not any(isinstance(op, MoE) for op, _ in ops(model("google/gemma-4-31B text")))


def test_the_last_layer_is_full_whatever_the_list_says():
    made = model("google/gemma-4-31B text", layer_types=["sliding_attention"] * 60)
    assert {op.window: count for op, count in ops(made) if isinstance(op, Attention)} == {1024: 59, None: 1}


def test_layers_that_share_a_cache_may_have_twice_the_feed_forward():
    made = model("google/gemma-4-31B text", num_kv_shared_layers=20, use_double_wide_mlp=True)
    widths = {weight.rows for weight, _ in made.decoder.weighted() if weight.name == "mlp.up_proj.weight"}
    assert widths == {21_504, 43_008}
