"""Token mixers: what they store, keep for a request, keep for backward and compute, worked out by hand."""

import pytest

from tonnage.ops import (
    ChannelMixing,
    GatedDeltaNet,
    GatedRecurrence,
    Kernels,
    LightningAttention,
    Mamba,
    Mamba2,
    Op,
    ShortConvolution,
    StateCache,
    TimeMixing,
)

MAMBA = Mamba(hidden_size=64, inner_size=128, state_size=16, conv_kernel=4, dt_rank=4)
MAMBA_2 = Mamba2(hidden_size=64, heads=8, head_dim=16, state_size=32, groups=2, conv_kernel=4)
DELTA = GatedDeltaNet(hidden_size=64, key_heads=2, value_heads=4, key_dim=16, value_dim=32, conv_kernel=4)
LIGHTNING = LightningAttention(hidden_size=64, heads=4, head_dim=16)
SHORT = ShortConvolution(hidden_size=64, conv_kernel=3)
ALL = (
    MAMBA,
    MAMBA_2,
    DELTA,
    LIGHTNING,
    SHORT,
    TimeMixing(hidden_size=64, inner_size=64),
    ChannelMixing(hidden_size=64, intermediate_size=256),
    GatedRecurrence(hidden_size=64, width=64, heads=4, conv_kernel=4),
)


def elements(op: Op) -> dict[str, float]:
    return {saved.name: saved.elements for saved in op.saved(Kernels())}


def flops(op: Op) -> dict[str, float]:
    return {core.name: core.flops for core in op.core()}


@pytest.mark.parametrize("op", ALL, ids=lambda op: type(op).__name__)
def test_what_a_mixer_keeps_does_not_grow_with_the_context(op: Op):
    assert op.caches() and all(isinstance(cache, StateCache) for cache in op.caches())
    assert not any(saved.per_key for saved in op.saved(Kernels()))
    assert not any(core.per_key for core in op.core())


@pytest.mark.parametrize("op", ALL, ids=lambda op: type(op).__name__)
def test_a_mixer_keeps_its_input_for_backward_and_whole_on_every_rank(op: Op):
    first = op.saved(Kernels())[0]
    assert (first.name.endswith("input"), first.elements, first.split) == (True, 64, "whole")


def test_mamba_has_the_parameters_of_its_projections_convolution_and_state():
    stored = sum(weight.num_parameters for weight in MAMBA.weights())
    projections = 64 * 256 + 128 * (4 + 32) + 4 * 128 + 128 + 128 * 64
    assert stored == projections + 128 * 4 + 128 + 128 * 16 + 128


def test_mamba_keeps_a_state_and_the_last_three_columns():
    assert [cache.elements for cache in MAMBA.caches()] == [128 * 16, 128 * 3]


def test_mamba_computes_the_convolution_and_the_steps_again_in_backward():
    kept = elements(MAMBA)
    assert kept["x and gate"] == 256 and kept["scan output"] == 128
    assert "after convolution" not in kept


def test_mamba_2_stores_gate_x_b_c_and_step_in_one_projection():
    projection = [weight for weight in MAMBA_2.weights() if weight.name == "mixer.in_proj.weight"]
    assert sum(weight.rows for weight in projection) == 2 * 128 + 2 * 2 * 32 + 8


def test_mamba_2_keeps_no_copy_of_its_state_for_every_token():
    assert elements(MAMBA_2)["gate, x, B, C and step"] == 2 * 128 + 2 * 2 * 32 + 8
    assert sum(elements(MAMBA_2).values()) == 64 + 392 + 128 + 128


def test_mamba_2_computes_7_flop_a_channel_and_state_number():
    assert flops(MAMBA_2) == {"state space duality": 7 * 128 * 32, "short convolution": 2 * 4 * (128 + 128)}


def test_a_bias_of_out_proj_may_differ_from_that_of_in_proj():
    def biases(**options: bool) -> list[str]:
        op = Mamba2(hidden_size=64, heads=8, head_dim=16, state_size=32, groups=2, conv_kernel=4, **options)
        return sorted({weight.name for weight in op.weights() if "proj.bias" in weight.name})

    assert biases() == []
    assert biases(bias=True) == ["mixer.in_proj.bias", "mixer.out_proj.bias"]
    assert biases(out_bias=True) == ["mixer.out_proj.bias"]
    assert biases(bias=True, out_bias=False) == ["mixer.in_proj.bias"]


def test_a_row_parallel_bias_is_whole_on_every_rank():
    op = Mamba(hidden_size=64, inner_size=128, state_size=16, conv_kernel=4, dt_rank=4, bias=True)
    splits = {weight.name: weight.split for weight in op.weights()}
    assert (splits["mixer.in_proj.bias"], splits["mixer.out_proj.bias"]) == ("tensor", "replicated")


@pytest.mark.parametrize("op", [MAMBA, MAMBA_2, LIGHTNING], ids=lambda op: type(op).__name__)
def test_the_engine_decides_the_type_of_a_state_of_which_the_config_says_nothing(op: Op):
    assert op.caches()[0].bytes_per_element is None


def test_the_state_of_a_gated_delta_net_is_fp32_and_its_convolution_is_not():
    state, convolution = DELTA.caches()
    assert (state.elements, state.bytes_per_element) == (4 * 16 * 32, 4)
    assert (convolution.elements, convolution.bytes_per_element) == ((2 * 32 + 128) * 3, None)


def test_the_inputs_of_a_gated_delta_net_may_be_joined_or_apart():
    apart = GatedDeltaNet(
        hidden_size=64,
        key_heads=2,
        value_heads=4,
        key_dim=16,
        value_dim=32,
        conv_kernel=4,
        inputs=(("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("g_proj", "z"), ("a_proj", "a"), ("b_proj", "b")),
    )
    counts = [sum(weight.num_parameters for weight in op.weights()) for op in (DELTA, apart)]
    assert counts[0] == counts[1]


def test_lightning_attention_keeps_a_square_a_head_and_writes_and_reads_it_once_a_token():
    assert [cache.elements for cache in LIGHTNING.caches()] == [4 * 16 * 16]
    assert flops(LIGHTNING) == {"lightning attention": 2 * 2 * 4 * 16 * 16}


def test_tables_of_decays_are_counted_only_where_a_class_stores_them():
    with_tables = LightningAttention(hidden_size=64, heads=4, head_dim=16, decays=8)
    stored = [sum(weight.num_parameters for weight in op.weights()) for op in (with_tables, LIGHTNING)]
    assert stored[0] - stored[1] == 4 * (1 + 8 + 8 + 64)


def test_a_short_convolution_keeps_two_columns_of_the_width():
    assert [cache.elements for cache in SHORT.caches()] == [64 * 2]
    assert sum(weight.num_parameters for weight in SHORT.weights()) == 4 * 64 * 64 + 64 * 3
    biased = ShortConvolution(hidden_size=64, conv_kernel=3, bias=True)
    more = sum(weight.num_parameters for weight in biased.weights()) - sum(w.num_parameters for w in SHORT.weights())
    assert more == 3 * 64 + 64 + 64
