"""OPT and XGLM: counts, the two extra positions, and the odd form of OPT-350m."""

import pytest

from architectures.classic_configs import OPT
from tonnage.architectures import build


@pytest.mark.parametrize("name", OPT)
def test_a_released_opt_or_xglm_counts_exactly(name: str):
    assert build(OPT[name].fields, name).num_parameters() == OPT[name].parameters


def test_the_position_table_has_two_rows_more_than_positions():
    made = build(OPT["facebook/opt-125m"].fields, "opt")
    assert made.decoder.before[1].num_embeddings == 2050
    assert made.context == 2048


def test_opt_350m_embeds_in_half_its_width_and_ends_without_a_norm():
    made = build(OPT["facebook/opt-350m"].fields, "opt-350m")
    names = [weight.name for op in (*made.decoder.before, *made.decoder.after) for weight in op.weights()]
    assert names == ["embed_tokens.weight", "embed_positions.weight", "project_in.weight", "project_out.weight"]
    assert [op.name for op in made.decoder.blocks[0].ops] == [
        "self_attn",
        "self_attn_layer_norm",
        "",
        "final_layer_norm",
    ]


def test_xglm_computes_its_positions_and_stores_none():
    made = build(OPT["facebook/xglm-564M"].fields, "xglm")
    assert [weight.name for op in made.decoder.before for weight in op.weights()] == ["embed_tokens.weight"]
