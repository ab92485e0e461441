"""BART and mBART: encoder and decoder with learned positions, biases everywhere and a shared, tied embedding.

Structure, heads and defaults: huggingface/transformers src/transformers/models/bart and models/mbart (v5.23). BART
normalises after each sublayer, mBART before it and once more at the end of each stack. Both keep a bias for the logits
beside the head, and two rows more than positions.
"""

from typing import Any, Literal

from tonnage.architectures._classic import head_width
from tonnage.architectures._config import Config
from tonnage.architectures._encoder import kind_of, labels, layer_norm
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import model
from tonnage.architectures._registry import architecture, class_name
from tonnage.kernel.message import Message
from tonnage.ops import MLP, Attention, Embedding, Head, Linear, Op, Parameter, Reused

OFFSET = 2  # BartLearnedPositionalEmbedding.offset
NAMES = ("q_proj", "k_proj", "v_proj", "out_proj")


@architecture(
    "BartModel",
    "BartForConditionalGeneration",
    "BartForSequenceClassification",
    "BartForQuestionAnswering",
    model_types=("bart",),
)
def bart(c: Config) -> Model:
    return _model(c, "bart", before=False)


@architecture(
    "MBartModel",
    "MBartForConditionalGeneration",
    "MBartForSequenceClassification",
    "MBartForQuestionAnswering",
    model_types=("mbart",),
)
def mbart(c: Config) -> Model:
    return _model(c, "mbart", before=True)


def _model(c: Config, family: str, before: bool) -> Model:
    h, positions = c.size("d_model"), c.size("max_position_embeddings", default=1024)
    table = Embedding(name="shared", num_embeddings=c.size("vocab_size"), width=h)
    head = _head(c, h)
    decoder = _stack(c, "decoder", table, positions, before, head)
    encoder = _stack(c, "encoder", Reused(table), positions, before)
    tied = any(isinstance(op, Head) and op.tied for op in head)
    return model(c, family, decoder, encoder, tied=tied, context=positions)


def _head(c: Config, h: int) -> tuple[Op, ...]:
    kind = kind_of(c)
    if kind == "ForSequenceClassification":
        dense = Linear(name="classification_head.dense", in_features=h, out_features=h, bias=True)
        return dense, labels(c.with_defaults({"num_labels": 3}), "classification_head.out_proj", h)
    if kind == "ForQuestionAnswering":
        return (labels(c, "qa_outputs", h, 2),)
    if class_name(c) and not class_name(c).endswith("ForConditionalGeneration"):
        return ()
    vocabulary, tied = c.size("vocab_size"), c.flag("tie_word_embeddings", default=True)
    bias = Parameter(name="final_logits_bias", elements=vocabulary, split="vocab", part="head")
    return Head(width=h, vocab_size=vocabulary, tied=tied), bias


def _stack(
    c: Config, name: Literal["encoder", "decoder"], table: Op, positions: int, before: bool, head: tuple[Op, ...] = ()
) -> Branch:
    h = c.size("d_model")
    places = Embedding(name=f"{name}.embed_positions", num_embeddings=positions + OFFSET, width=h, split="replicated")
    last = (layer_norm(f"{name}.layer_norm", h),) if before else ()
    count = c.depth(f"{name}_layers", "num_hidden_layers")
    return Branch(
        name=name,
        kind=name,
        hidden_size=h,
        before=(table, places, layer_norm(f"{name}.layernorm_embedding", h)),
        blocks=(_layer(c, name, before),),
        layers=(0,) * count,
        after=(*last, *head),
    )


def _layer(c: Config, name: str, before: bool) -> Block:
    """A layer whose norms come before or after each sublayer."""
    h = c.size("d_model")
    feed = MLP(
        name="",
        hidden_size=h,
        intermediate_size=c.size(f"{name}_ffn_dim"),
        gated=False,
        bias=True,
        names=("", "fc1", "fc2"),
    )
    parts = [
        (_attention(c, name, "self_attn", causal=name == "decoder"), "self_attn_layer_norm"),
        (feed, "final_layer_norm"),
    ]
    if name == "decoder":
        parts.insert(1, (_attention(c, name, "encoder_attn", memory_width=h), "encoder_attn_layer_norm"))
    pairs = [(layer_norm(norm, h), op) if before else (op, layer_norm(norm, h)) for op, norm in parts]
    return Block(Message("{kind} layer", kind=name), tuple(op for pair in pairs for op in pair))


def _attention(c: Config, side: str, name: str, **options: Any) -> Attention:
    h, heads = c.size("d_model"), c.size(f"{side}_attention_heads", "num_attention_heads")
    return Attention(
        name=name,
        hidden_size=h,
        heads=heads,
        kv_heads=heads,
        head_dim=head_width(c, h, heads),
        bias=True,
        names=NAMES,
        **options,
    )
