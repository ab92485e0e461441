"""Counts: MiMo-7B: the Hub's 7,833,409,536 with its draft layer, as llmfit 1.1.17 records it; MiMo-V2-Flash: the class
of transformers 5.23, 309 B with three draft layers on the model card (the Hub's 309,785,318,400 has 18,717,312 more,
about one for
each 128 x 128 weights: the scales of fp8).
"""

import pytest

from architectures.reading import billions, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention

V2 = "XiaomiMiMo/MiMo-V2-Flash"


@pytest.mark.parametrize(
    ("name", "count", "drafts", "active"),
    [("XiaomiMiMo/MiMo-7B-Base", 7_622_619_136, 7_833_409_536, 8), (V2, 308_778_780_864, 309_766_601_088, 15)],
)
def test_mimo_has_the_published_parameters(name: str, count: int, drafts: int, active: int):
    made = model(name)
    assert (made.num_parameters(), made.num_parameters(drafts=True)) == (count, drafts)
    assert billions(made.num_active_parameters()) == active


def test_sliding_layers_have_twice_the_key_heads_and_sinks_and_values_are_narrower():
    found: dict[int | None, list[object]] = {}
    for op, count in ops(model(V2)):
        if isinstance(op, Attention):
            seen = found.setdefault(op.window, [op.kv_heads, op.head_dim, op.value_dim, op.sinks, 0])
            seen[-1] += count
    assert found == {None: [4, 192, 128, False, 9], 128: [8, 192, 128, True, 39]}


def test_without_fields_of_their_own_sliding_layers_follow_the_class():
    changes = dict.fromkeys(
        (
            "swa_num_attention_heads",
            "swa_num_key_value_heads",
            "swa_head_dim",
            "swa_v_head_dim",
            "hybrid_layer_pattern",
            "moe_layer_freq",
            "add_swa_attention_sink_bias",
        )
    )
    plain = model(V2, **changes)
    assert plain.num_parameters() == model(V2).num_parameters()


@pytest.mark.parametrize("field", ["hybrid_layer_pattern", "moe_layer_freq"])
def test_patterns_hold_zeros_and_ones(field: str):
    with pytest.raises(InvalidInput, match=field):
        model(V2, **{field: [2] * 48})


def test_a_draft_layer_of_v2_slides_and_shares_the_table():
    draft = model(V2).branch("multi-token prediction")
    assert draft is not None and draft.num_layers == 3
    assert [op.window for op in draft.blocks[0].ops if isinstance(op, Attention)] == [128]
    assert model(V2, num_nextn_predict_layers=0).branch("multi-token prediction") is None
