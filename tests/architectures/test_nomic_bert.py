"""NomicBERT, GTE and Jina v3: counts, and the mixture of nomic-embed-text-v2."""

import pytest

from architectures.encoder_configs import NOMIC_BERT
from tonnage.architectures import build


@pytest.mark.parametrize("name", NOMIC_BERT)
def test_a_released_model_counts_exactly(name: str):
    assert build(NOMIC_BERT[name].fields, name).num_parameters() == NOMIC_BERT[name].parameters


def test_a_token_passes_through_2_of_8_experts_in_every_second_layer():
    # the model card: 475M total parameters, 305M active during inference
    made = build(NOMIC_BERT["nomic-ai/nomic-embed-text-v2-moe"].fields, "nomic")
    assert made.decoder.layers == (0, 1) * 6
    assert round(made.num_active_parameters() / 1e6) == 305
