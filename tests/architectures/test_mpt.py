"""MPT: MosaicML's class, with and without biases and learned positions, and that of transformers."""

import pytest

from architectures.classic_configs import MPT
from architectures.reading import cache_bytes
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput


@pytest.mark.parametrize("name", MPT)
def test_an_mpt_counts_exactly(name: str):
    assert build(MPT[name].fields, name).num_parameters() == MPT[name].parameters


def test_alibi_leaves_no_position_table_although_the_config_asks_for_one():
    assert len(build(MPT["mosaicml/mpt-7b"].fields, "mpt-7b").decoder.before) == 1
    assert len(build(MPT["llm-foundry mpt-1b"].fields, "mpt-1b").decoder.before) == 2


def test_the_class_of_transformers_ignores_the_biases_that_the_config_asks_for():
    fields = MPT["mosaicml/mpt-7b"].fields | {"architectures": ["MptForCausalLM"], "no_bias": False}
    assert build(fields, "mpt-7b").num_parameters() == MPT["mosaicml/mpt-7b"].parameters


@pytest.mark.parametrize(
    ("kind", "heads"), [("multihead_attention", 32), ("multiquery_attention", 1), ("grouped_query_attention", 8)]
)
def test_a_token_keeps_as_many_heads_as_the_kind_of_attention_says(kind: str, heads: int):
    fields = MPT["mosaicml/mpt-7b"].fields | {"attn_config": {"alibi": True, "attn_type": kind, "kv_n_heads": 8}}
    assert cache_bytes(build(fields, "mpt"), 1) == 32 * 2 * heads * 128 * 2


def test_a_sliding_window_bounds_what_is_kept():
    fields = MPT["mosaicml/mpt-7b"].fields | {"attn_config": {"rope": True, "sliding_window_size": 1024}}
    assert cache_bytes(build(fields, "mpt"), 8192) == 32 * 2 * 4096 * 2 * 1024


def test_an_unknown_kind_of_attention_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInput, match="attn_type must be one of multihead_attention"):
        build(MPT["mosaicml/mpt-7b"].fields | {"attn_config": {"attn_type": "linear"}}, "mpt")


def test_a_gated_feed_forward_and_rms_norms_follow_the_config():
    fields = MPT["mosaicml/mpt-7b"].fields | {
        "ffn_config": {"ffn_type": "mptglu"},
        "norm_type": "rmsnorm",
        "no_bias": False,
    }
    names = {weight.name for weight in build(fields, "mpt").decoder.blocks[0].weights()}
    assert "ffn.gate.weight" in names and "norm_1.bias" not in names and "attn.Wqkv.bias" in names


@pytest.mark.parametrize("ratio", [0, -1, 1e20])
def test_an_expansion_that_gives_no_width_is_refused(ratio: float):
    with pytest.raises(InvalidInput, match="expansion_ratio must widen d_model to a usable size"):
        build(MPT["mosaicml/mpt-7b"].fields | {"expansion_ratio": ratio}, "mpt")
