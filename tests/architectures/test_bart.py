"""BART and mBART: counts, the shared table, and the order of norms."""

import pytest

from architectures.encoder_configs import BART
from tonnage.architectures import build


@pytest.mark.parametrize("name", BART)
def test_a_released_bart_counts_exactly(name: str):
    assert build(BART[name].fields, name).num_parameters() == BART[name].parameters


def test_bart_normalises_after_a_sublayer_and_mbart_before_it():
    def order(name: str) -> list[str]:
        return [op.name for op in build(BART[name].fields, name).branch("encoder").blocks[0].ops]

    assert order("facebook/bart-base") == ["self_attn", "self_attn_layer_norm", "", "final_layer_norm"]
    assert order("facebook/mbart-large-cc25") == ["self_attn_layer_norm", "self_attn", "final_layer_norm", ""]


def test_the_decoder_keeps_its_own_tokens_and_the_encoders_apart():
    made = build(BART["facebook/bart-base"].fields, "bart")
    assert [cache.name for op in made.decoder.blocks[0].ops for cache in op.caches()] == [
        "keys and values",
        "keys and values of the encoder",
    ]
