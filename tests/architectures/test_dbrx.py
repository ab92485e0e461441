"""Count: transformers' class with the config of DBRX (published: 132B with 36B active)."""

import pytest

from architectures.reading import GIB, cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput

NAME = "databricks/dbrx-base"


def test_dbrx_has_the_published_parameters():
    made = model(NAME)
    assert made.num_parameters() == 131_596_523_520
    assert made.num_active_parameters() == 36_469_708_800


def test_dbrx_keeps_5_gib_of_its_32768_tokens():
    assert cache_bytes(model(NAME), 32_768) == 40 * 2 * 8 * 128 * 2 * 32_768 == 5 * GIB


def test_names_are_those_of_the_checkpoint():
    names = {weight.name for op, _ in ops(model(NAME)) for weight in op.weights()}
    assert names == {
        "norm_attn_norm.norm_1.weight",
        "norm_attn_norm.attn.Wqkv.weight",
        "norm_attn_norm.attn.out_proj.weight",
        "norm_attn_norm.norm_2.weight",
        "ffn.router.layer.weight",
        "ffn.experts.mlp.w1.weight",
        "ffn.experts.mlp.v1.weight",
        "ffn.experts.mlp.w2.weight",
    }


def test_a_config_without_its_section_of_experts_is_refused():
    with pytest.raises(InvalidInput, match="lacks ffn_config"):
        model(NAME, ffn_config=None)
