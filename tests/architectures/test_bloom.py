"""BLOOM: counts, and the norm after the embedding."""

import pytest

from architectures.classic_configs import BLOOM
from tonnage.architectures import build


@pytest.mark.parametrize("name", BLOOM)
def test_a_released_bloom_counts_exactly(name: str):
    assert build(BLOOM[name].fields, name).num_parameters() == BLOOM[name].parameters


def test_the_embedding_is_normalised_and_positions_have_no_table():
    made = build(BLOOM["bigscience/bloom"].fields, "bloom")
    names = [weight.name for op in made.decoder.before for weight in op.weights()]
    assert names == ["word_embeddings.weight", "word_embeddings_layernorm.weight", "word_embeddings_layernorm.bias"]
    assert made.context == 2048


def test_newer_configs_call_the_width_hidden_size_and_the_heads_n_head():
    fields = BLOOM["bigscience/bloom-560m"].fields
    renamed = {
        "hidden_size": fields["n_embed"],
        "n_head": fields["num_attention_heads"],
        "n_embed": None,
        "num_attention_heads": None,
    }
    assert build(fields | renamed, "bloom").num_parameters() == 559_214_592
