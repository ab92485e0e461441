"""ModernBERT: counts, and which layers see only their neighbours."""

import pytest

from architectures.encoder_configs import MODERNBERT
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput

BASE = MODERNBERT["answerdotai/ModernBERT-base"].fields


@pytest.mark.parametrize("name", MODERNBERT)
def test_a_released_modernbert_counts_exactly(name: str):
    assert build(MODERNBERT[name].fields, name).num_parameters() == MODERNBERT[name].parameters


def test_every_third_layer_sees_everything_and_the_others_129_tokens():
    made = build(BASE, "modernbert")
    windows = [made.decoder.blocks[layer].ops[-3].window for layer in made.decoder.layers]
    assert windows[:6] == [None, 129, 129, None, 129, 129]
    assert windows.count(None) == 8


def test_the_first_layer_has_no_norm_before_its_attention():
    first, second = (build(BASE, "modernbert").decoder.blocks[i] for i in (0, 1))
    assert [op.name for op in first.ops] == ["attn", "mlp_norm", "mlp"]
    assert [op.name for op in second.ops] == ["attn_norm", "attn", "mlp_norm", "mlp"]


def test_an_unknown_kind_of_layer_is_refused():
    with pytest.raises(
        InvalidInput, match=r"layer_types may hold full_attention, sliding_attention. Got 'linear_attention'"
    ):
        build(BASE | {"layer_types": ["linear_attention"] * 22}, "modernbert")
