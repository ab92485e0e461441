"""BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA and MPNet: the encoders under most embedding models and rerankers.

Structure, heads and defaults: huggingface/transformers src/transformers/models/bert, roberta, xlm_roberta, electra and
mpnet (v5.23). RoBERTa's first positions are padding_idx + 1 rows that no token uses. ELECTRA may embed in a smaller
width.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._encoder import (
    attention,
    dense,
    encoder,
    heads,
    labels,
    language,
    layer_norm,
    mlp,
    post_norm,
    tables,
)
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import num_layers
from tonnage.architectures._registry import architecture
from tonnage.ops import Op, Parameter

DEFAULTS = {"max_position_embeddings": 512, "type_vocab_size": 2}
SELF = ("self.query", "self.key", "self.value", "output.dense")


@architecture(
    "BertModel",
    "BertForMaskedLM",
    "BertLMHeadModel",
    "BertForPreTraining",
    "BertForNextSentencePrediction",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
    "BertForMultipleChoice",
    model_types=("bert",),
)
def bert(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h, positions = c.size("hidden_size"), c.size("max_position_embeddings")
    before = (*tables(c, h, positions, _types(c)), layer_norm("embeddings.LayerNorm", h))
    pooler = (dense("pooler.dense", h),)
    names = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder")
    spoken = language(c, h, h, names)
    classify, choose = (*pooler, labels(c, "classifier", h)), (*pooler, labels(c, "classifier", h, 1))
    known = heads(c, h, pooler=pooler, spoken=spoken, classify=classify, choose=choose)
    follows = labels(c, "cls.seq_relationship", h, 2)
    known |= {"ForPreTraining": (*pooler, *spoken, follows), "ForNextSentencePrediction": (*pooler, follows)}
    return encoder(c, "bert", before, (_layer(c),), (0,) * num_layers(c), known, width=h, context=positions)


@architecture(
    "RobertaModel",
    "RobertaForMaskedLM",
    "RobertaForCausalLM",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaForQuestionAnswering",
    "RobertaForMultipleChoice",
    "XLMRobertaModel",
    "XLMRobertaForMaskedLM",
    "XLMRobertaForCausalLM",
    "XLMRobertaForSequenceClassification",
    "XLMRobertaForTokenClassification",
    "XLMRobertaForQuestionAnswering",
    "XLMRobertaForMultipleChoice",
    "CamembertModel",
    "CamembertForMaskedLM",
    "CamembertForSequenceClassification",
    "CamembertForTokenClassification",
    model_types=("roberta", "xlm-roberta", "camembert"),
)
def roberta(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h, positions = c.size("hidden_size"), c.size("max_position_embeddings")
    before = (*tables(c, h, positions, _types(c)), layer_norm("embeddings.LayerNorm", h))
    known = _roberta_heads(c, h)
    context = positions - c.size("pad_token_id", default=1, smallest=0) - 1
    return encoder(c, "roberta", before, (_layer(c),), (0,) * num_layers(c), known, width=h, context=context)


@architecture(
    "ElectraModel",
    "ElectraForMaskedLM",
    "ElectraForCausalLM",
    "ElectraForPreTraining",
    "ElectraForSequenceClassification",
    "ElectraForTokenClassification",
    "ElectraForQuestionAnswering",
    "ElectraForMultipleChoice",
    model_types=("electra",),
)
def electra(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h, positions = c.size("hidden_size"), c.size("max_position_embeddings")
    narrow = c.size("embedding_size", default=h)
    before: tuple[Op, ...] = (*tables(c, narrow, positions, _types(c)), layer_norm("embeddings.LayerNorm", narrow))
    if narrow != h:
        before += (dense("embeddings_project", narrow, h),)
    spoken = language(
        c, h, narrow, ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head")
    )
    classify = (dense("classifier.dense", h), labels(c, "classifier.out_proj", h))
    choose = (dense("sequence_summary.summary", h), labels(c, "classifier", h, 1))
    known = heads(c, h, spoken=spoken, classify=classify, choose=choose)
    guess = "discriminator_predictions.dense"
    known["ForPreTraining"] = (dense(guess, h), labels(c, f"{guess}_prediction", h, 1))
    return encoder(c, "electra", before, (_layer(c),), (0,) * num_layers(c), known, width=h, context=positions)


@architecture(
    "MPNetModel",
    "MPNetForMaskedLM",
    "MPNetForSequenceClassification",
    "MPNetForTokenClassification",
    "MPNetForQuestionAnswering",
    "MPNetForMultipleChoice",
    model_types=("mpnet",),
)
def mpnet(c: Config) -> Model:
    h, positions = c.size("hidden_size"), c.size("max_position_embeddings", default=512)
    mixer = attention(c, name="attention", names=("attn.q", "attn.k", "attn.v", "attn.o"))
    layer = post_norm(
        "encoder layer",
        mixer,
        "attention.LayerNorm",
        mlp(c, "intermediate.dense", "output.dense"),
        "output.LayerNorm",
        h,
    )
    buckets = c.size("relative_attention_num_buckets", default=32)
    relative = Parameter(
        name="encoder.relative_attention_bias.weight", elements=buckets * mixer.heads, part="attention"
    )
    before = (*tables(c, h, positions, 0), layer_norm("embeddings.LayerNorm", h), relative)
    context = positions - 2  # padding_idx is 1
    return encoder(c, "mpnet", before, (layer,), (0,) * num_layers(c), _roberta_heads(c, h), width=h, context=context)


def _layer(c: Config) -> Block:
    mixer = attention(c, name="attention", names=SELF)
    feed = mlp(c, "intermediate.dense", "output.dense")
    return post_norm(
        "encoder layer", mixer, "attention.output.LayerNorm", feed, "output.LayerNorm", c.size("hidden_size")
    )


def _roberta_heads(c: Config, h: int) -> dict[str, tuple[Op, ...]]:
    pooler = (dense("pooler.dense", h),)
    spoken = language(c, h, h, ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder"))
    classify = (dense("classifier.dense", h), labels(c, "classifier.out_proj", h))
    return heads(c, h, pooler=pooler, spoken=spoken, classify=classify, choose=(*pooler, labels(c, "classifier", h, 1)))


def _types(c: Config) -> int:
    return c.size("type_vocab_size", smallest=0)
