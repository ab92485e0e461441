"""Counts: the cards of LFM2-350M and 1.2B, the Hub's of LFM2-8B-A1B (8,339,929,856 in BF16 and 704 in F32).

Published active parameters of LFM2-8B-A1B: 1.5B.
"""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention, ShortConvolution, StateCache

SMALL = "LiquidAI/LFM2-350M"
DENSE = "LiquidAI/LFM2-1.2B"
SPARSE = "LiquidAI/LFM2-8B-A1B"


@pytest.mark.parametrize(
    ("name", "count"), [(SMALL, 354_483_968), (DENSE, 1_170_340_608), (SPARSE, 8_339_929_856 + 704)]
)
def test_lfm2_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_a_token_passes_through_1_5_billion_of_8_3():
    assert model(SPARSE).num_active_parameters() == 1_557_740_992


def test_the_f32_tensors_of_the_mixture_are_one_bias_an_expert_of_22_layers():
    biases = [(w.num_parameters, count) for op, count in ops(model(SPARSE)) for w in op.weights() if "bias" in w.name]
    assert sum(count * size for size, count in biases) == 704


def test_six_layers_of_sixteen_are_of_attention():
    kinds: dict[type, int] = {}
    for op, count in ops(model(DENSE)):
        kinds[type(op)] = kinds.get(type(op), 0) + count
    assert (kinds[ShortConvolution], kinds[Attention]) == (10, 6)


def test_a_token_keeps_12288_bytes_and_a_request_81920():
    assert cache_bytes(model(DENSE), 1) == 6 * 2 * 8 * 64 * 2 == 12_288
    assert cache_bytes(model(DENSE), 1, StateCache) == 10 * 2048 * 2 * 2 == 81_920
    assert cache_bytes(model(SPARSE), 1, StateCache) == 18 * 2048 * 2 * 2 == 147_456


def test_the_width_of_a_feed_forward_is_two_thirds_rounded_up_unless_it_is_not_adjusted():
    def width(**changes: object) -> set[int]:
        made = model(DENSE, **changes)
        return {
            weight.rows for op, _ in ops(made) for weight in op.weights() if weight.name == "feed_forward.w1.weight"
        }

    assert width() == {8192}
    assert width(block_auto_adjust_ff_dim=False) == {12_288}
    assert width(block_ffn_dim_multiplier=1.01) == {8448}


def test_names_are_those_of_the_checkpoint():
    names = {weight.name for op, _ in ops(model(DENSE)) for weight in op.weights()}
    assert names == {
        "operator_norm.weight",
        "conv.in_proj.weight",
        "conv.conv.weight",
        "conv.out_proj.weight",
        "ffn_norm.weight",
        "feed_forward.w1.weight",
        "feed_forward.w2.weight",
        "feed_forward.w3.weight",
        "self_attn.q_proj.weight",
        "self_attn.k_proj.weight",
        "self_attn.v_proj.weight",
        "self_attn.out_proj.weight",
        "self_attn.q_layernorm.weight",
        "self_attn.k_layernorm.weight",
    }


def test_a_kind_of_layer_that_the_family_lacks_is_refused():
    with pytest.raises(InvalidInput, match="sliding_attention"):
        model(SPARSE, layer_types=["sliding_attention"] * 24)
