"""T5 and its successors: counts, the shared table, the tables of positions, and what a decoder keeps of both sides."""

import pytest

from architectures.encoder_configs import T5
from tonnage.architectures import build


@pytest.mark.parametrize("name", T5)
def test_a_released_t5_counts_exactly(name: str):
    assert build(T5[name].fields, name).num_parameters() == T5[name].parameters


def test_the_encoder_uses_the_table_that_the_decoder_holds():
    made = build(T5["google-t5/t5-small"].fields, "t5")
    assert [branch.name for branch in made.branches] == ["decoder", "encoder"]
    tables = [weight for branch in made.branches for op in branch.before for weight in op.weights()]
    assert [(weight.name, weight.rows) for weight in tables] == [("shared.weight", 32128)]
    assert made.tied


def test_the_table_of_positions_is_in_the_first_layer_of_t5_and_in_every_layer_of_umt5():
    def tables(name: str) -> int:
        made = build(T5[name].fields, name)
        return sum(count for weight, count in made.weighted() if "relative_attention_bias" in weight.name)

    assert tables("google-t5/t5-small") == 2
    assert tables("google/umt5-xxl, encoder") == 24


def test_the_decoder_keeps_its_own_tokens_and_the_encoders_apart():
    made = build(T5["google-t5/t5-small"].fields, "t5")
    kept = [cache.name for op in made.branch("decoder").blocks[0].ops for cache in op.caches()]
    assert kept == ["keys and values", "keys and values of the encoder"]
    assert not [cache for block in made.branch("encoder").blocks for op in block.ops for cache in op.caches()]


def test_the_encoder_alone_holds_the_table_and_no_head():
    made = build(T5["google/t5-v1_1-xxl, encoder"].fields, "t5")
    assert [branch.kind for branch in made.branches] == ["encoder"]
    assert (made.vocab_size, made.tied) == (32128, False)


def test_a_config_of_one_side_without_num_decoder_layers_is_symmetric():
    fields = {key: value for key, value in T5["google-t5/t5-small"].fields.items() if key != "num_decoder_layers"}
    assert build(fields, "t5").num_parameters() == 60_506_624
