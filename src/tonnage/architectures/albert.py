"""ALBERT: BERT whose layers share their weights, and whose words are embedded in a smaller width.

Structure, heads and defaults: huggingface/transformers src/transformers/models/albert (v5.23). Layer i uses the weights
of group int(i / (num_hidden_layers / num_hidden_groups)); a group holds inner_group_num layers. The weights are counted
where a group is used first; later uses compute and keep the same.
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
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Op, Reused

DEFAULTS = {"embedding_size": 128, "max_position_embeddings": 512, "type_vocab_size": 2}


@architecture(
    "AlbertModel",
    "AlbertForMaskedLM",
    "AlbertForPreTraining",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertForQuestionAnswering",
    "AlbertForMultipleChoice",
    model_types=("albert",),
)
def albert(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h, narrow, positions = c.size("hidden_size"), c.size("embedding_size"), c.size("max_position_embeddings")
    before = (
        *tables(c, narrow, positions, c.size("type_vocab_size", smallest=0)),
        layer_norm("embeddings.LayerNorm", narrow),
        dense("encoder.embedding_hidden_mapping_in", narrow, h),
    )
    blocks, layers = _layers(c, h)
    return encoder(c, "albert", before, blocks, layers, _heads(c, h, narrow), width=h, context=positions)


def _layers(c: Config, h: int) -> tuple[tuple[Block, ...], tuple[int, ...]]:
    count, groups = num_layers(c), c.depth("num_hidden_groups", default=1)
    if groups > count:
        raise InvalidInput(
            "{where}: num_hidden_groups ({groups}) exceeds {@num_hidden_layers} ({count}).",
            where=c.where,
            groups=groups,
            count=count,
        )
    inner = c.size("inner_group_num", default=1, largest=min(count * groups, 1024))
    ops = tuple(op for _ in range(inner) for op in _layer(c, h).ops)
    owner, reuser = (
        Block("first use of a layer", ops),
        Block("repeated use of a layer", tuple(Reused(op) for op in ops)),
    )
    group = [int(i / (count / groups)) for i in range(count)]
    layers = tuple(0 if i == 0 or group[i] != group[i - 1] else 1 for i in range(count))
    return ((owner, reuser) if 1 in layers else (owner,)), layers


def _layer(c: Config, h: int) -> Block:
    mixer = attention(c, name="attention", names=("query", "key", "value", "dense"))
    return post_norm(
        "encoder layer", mixer, "attention.LayerNorm", mlp(c, "ffn", "ffn_output"), "full_layer_layer_norm", h
    )


def _heads(c: Config, h: int, narrow: int) -> dict[str, tuple[Op, ...]]:
    pooler = (dense("pooler", h),)
    spoken = language(c, h, narrow, ("predictions.dense", "predictions.LayerNorm", "predictions.decoder"))
    classify, choose = (*pooler, labels(c, "classifier", h)), (*pooler, labels(c, "classifier", h, 1))
    known = heads(c, h, pooler=pooler, spoken=spoken, classify=classify, choose=choose)
    return known | {"ForPreTraining": (*pooler, *spoken, labels(c, "sop_classifier.classifier", h))}
