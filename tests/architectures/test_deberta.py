"""DeBERTa v2 and v3: counts, shared and separate projections of positions."""

import pytest

from architectures.encoder_configs import DEBERTA
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput

BASE = DEBERTA["microsoft/deberta-v3-base"].fields


@pytest.mark.parametrize("name", DEBERTA)
def test_a_released_deberta_counts_exactly(name: str):
    assert build(DEBERTA[name].fields, name).num_parameters() == DEBERTA[name].parameters


@pytest.mark.parametrize(("kinds", "projections"), [("p2c|c2p", 2), (["c2p"], 1), (None, 0)])
def test_positions_that_do_not_share_have_projections_of_their_own(kinds: object, projections: int):
    more = (
        build(BASE | {"share_att_key": False, "pos_att_type": kinds}, "deberta").num_parameters()
        - build(BASE, "deberta").num_parameters()
    )
    assert more == 12 * projections * (768 * 768 + 768)


def test_relative_positions_have_two_rows_for_each_bucket():
    names = {weight.name: weight.rows for op in build(BASE, "deberta").decoder.before for weight in op.weights()}
    assert names["encoder.rel_embeddings.weight"] == 512
    assert "embeddings.position_embeddings.weight" not in names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pos_att_type": 3, "share_att_key": False}, "pos_att_type must be a list of c2p and p2c, or one text. Got 3"),
        ({"conv_kernel_size": 3, "conv_groups": 5}, r"conv_groups \(5\) must divide hidden_size \(768\)"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change: dict, message: str):
    with pytest.raises(InvalidInput, match=message):
        build(BASE | change, "deberta")
