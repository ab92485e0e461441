"""DistilBERT: counts of the bare model and of a classifier."""

import pytest

from architectures.encoder_configs import DISTILBERT
from tonnage.architectures import build


@pytest.mark.parametrize("name", DISTILBERT)
def test_a_released_distilbert_counts_exactly(name: str):
    assert build(DISTILBERT[name].fields, name).num_parameters() == DISTILBERT[name].parameters


def test_it_has_half_the_layers_of_bert_and_no_pooler():
    made = build(DISTILBERT["distilbert/distilbert-base-uncased"].fields, "distilbert")
    assert (made.num_layers, made.decoder.after) == (6, ())
