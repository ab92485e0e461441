"""BERT, RoBERTa, XLM-RoBERTa, ELECTRA and MPNet: counts of embedding models and rerankers, heads, positions."""

import pytest

from architectures.encoder_configs import BERT, ELECTRA, ROBERTA
from tonnage.architectures import build
from tonnage.kernel.errors import MissingDatum

ALL = {**BERT, **ROBERTA, **ELECTRA}


@pytest.mark.parametrize("name", ALL)
def test_a_released_encoder_counts_exactly(name: str):
    assert build(ALL[name].fields, name).num_parameters() == ALL[name].parameters


def test_an_encoder_keeps_nothing_between_tokens():
    made = build(BERT["BAAI/bge-large-en-v1.5"].fields, "bge")
    assert [cache for block in made.decoder.blocks for op in block.ops for cache in op.caches()] == []
    assert made.decoder.kind == "encoder"


def test_roberta_cannot_use_its_first_two_positions():
    assert build(ROBERTA["FacebookAI/roberta-base"].fields, "roberta").context == 512
    assert build(ROBERTA["BAAI/bge-m3"].fields, "bge-m3").context == 8192
    assert build(BERT["google-bert/bert-base-uncased"].fields, "bert").context == 512


def test_the_masked_language_model_drops_the_pooler_and_ties_its_projection():
    made = build(BERT["google-bert/bert-base-uncased"].fields, "bert")
    names = [weight.name for op in made.decoder.after for weight in op.weights()]
    assert names == [
        "cls.predictions.transform.dense.weight",
        "cls.predictions.transform.dense.bias",
        "cls.predictions.transform.LayerNorm.weight",
        "cls.predictions.transform.LayerNorm.bias",
        "cls.predictions.decoder.bias",
    ]
    assert made.tied


def test_a_bert_that_decodes_keeps_its_keys_and_values():
    fields = BERT["google-bert/bert-base-uncased"].fields | {"architectures": ["BertLMHeadModel"], "is_decoder": True}
    made = build(fields, "bert")
    assert sum(cache.elements for op in made.decoder.blocks[0].ops for cache in op.caches()) == 2 * 768


def test_a_head_that_nobody_described_is_named():
    with pytest.raises(MissingDatum, match="the head of ElectraForNextSentencePrediction is not described"):
        build(
            ELECTRA["google/electra-small-discriminator"].fields
            | {"architectures": ["ElectraForNextSentencePrediction"]},
            "electra",
        )


def test_defaults_that_a_config_leaves_out_are_remembered():
    fields = {
        key: value for key, value in BERT["google-bert/bert-base-uncased"].fields.items() if key != "type_vocab_size"
    }
    assert build(fields, "bert").assumed == {"type_vocab_size": 2}
