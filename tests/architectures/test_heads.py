"""Bare classes, scores and reward models of decoder families that register only their language model."""

import pytest

from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.ops import Head

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
}
BODY = build(LLAMA | {"architectures": ["LlamaForCausalLM"]}, "llama").num_parameters() - 1000 * 64


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("LlamaModel", 0),
        ("LlamaForSequenceClassification", 5 * 64),
        ("LlamaForTokenClassification", 5 * 64 + 5),
        ("LlamaForQuestionAnswering", 2 * 64 + 2),
        ("LlamaForCausalLM", 1000 * 64),
    ],
)
def test_the_class_name_says_which_head_stands_on_the_layers(name: str, head: int):
    made = build(LLAMA | {"architectures": [name], "id2label": {str(i): f"LABEL_{i}" for i in range(5)}}, name)
    assert made.num_parameters() == BODY + head
    assert made.architecture == name


@pytest.mark.parametrize(
    ("labels", "outputs"), [({}, 2), ({"num_labels": 1}, 1), ({"num_labels": 3, "id2label": {"0": "a"}}, 1)]
)
def test_a_score_has_an_output_for_each_label(labels: dict, outputs: int):
    made = build(LLAMA | {"architectures": ["LlamaForSequenceClassification"]} | labels, "reranker")
    assert made.num_parameters() == BODY + outputs * 64


def test_a_bare_class_is_found_by_its_name_alone():
    fields = {key: value for key, value in LLAMA.items() if key != "model_type"}
    assert build(fields | {"architectures": ["LlamaModel"]}, "embedder").num_parameters() == BODY


def test_a_model_without_its_head_ties_nothing():
    made = build(LLAMA | {"architectures": ["LlamaModel"], "tie_word_embeddings": True}, "embedder")
    assert not made.tied
    assert not any(isinstance(op, Head) for op in made.decoder.after)


@pytest.mark.parametrize(("name", "outputs"), [("Qwen2ForRewardModel", 1), ("Qwen2ForProcessRewardModel", 2)])
def test_a_reward_model_of_qwen2_scores_through_a_hidden_layer(name: str, outputs: int):
    fields = LLAMA | {"model_type": "qwen2", "use_sliding_window": False, "tie_word_embeddings": False}
    bare = build(fields | {"architectures": ["Qwen2Model"]}, "qwen2").num_parameters()
    assert (
        build(fields | {"architectures": [name]}, name).num_parameters() == bare + 64 * 64 + 64 + outputs * 64 + outputs
    )


def test_the_score_of_an_unknown_reward_model_is_not_guessed():
    with pytest.raises(
        MissingDatum, match=r"the score of LlamaForRewardModel is not described. Known: Qwen2ForRewardModel"
    ):
        build(LLAMA | {"architectures": ["LlamaForRewardModel"]}, "reward")


@pytest.mark.parametrize("labels", [[], {}, "three", 3])
def test_id2label_must_be_a_table(labels: object):
    with pytest.raises(InvalidInput, match="id2label must map numbers to names"):
        build(LLAMA | {"architectures": ["LlamaForSequenceClassification"], "id2label": labels}, "reranker")
