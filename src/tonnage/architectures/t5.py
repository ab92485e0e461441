"""T5, T5 v1.1, Flan-T5, ByT5, mT5 and UMT5: encoder and decoder with tables of relative positions, and the encoder
alone.

Structure and defaults: huggingface/transformers src/transformers/models/t5, mt5 and umt5 (v5.23). The table is in the
first layer of each stack (T5, mT5) or in every layer (UMT5). Encoder and decoder share the embedding. The head is tied
where the config does not say otherwise; those of T5 v1.1, Flan-T5, mT5 and UMT5 say tie_word_embeddings: false, and
their checkpoints hold a head of their own, although a model that transformers v5 makes from the config alone ties it.
"""

from typing import Any, Literal

from tonnage.architectures._config import Config
from tonnage.architectures._encoder import dense, kind_of, labels
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import model, norm
from tonnage.architectures._registry import architecture, class_name
from tonnage.kernel.message import Message
from tonnage.ops import MLP, Attention, Embedding, Head, Op, Parameter, Reused

DEFAULTS = {"relative_attention_num_buckets": 32, "feed_forward_proj": "relu"}
LATER_DEFAULTS = {"relative_attention_num_buckets": 32, "feed_forward_proj": "gated-gelu"}
NAMES = ("q", "k", "v", "o")


@architecture(
    "T5Model",
    "T5ForConditionalGeneration",
    "T5WithLMHeadModel",
    "T5EncoderModel",
    "T5ForSequenceClassification",
    "T5ForTokenClassification",
    "T5ForQuestionAnswering",
    model_types=("t5",),
)
def t5(c: Config) -> Model:
    return _t5(c.with_defaults(DEFAULTS), "t5", every_layer=False)


@architecture(
    "MT5Model",
    "MT5ForConditionalGeneration",
    "MT5EncoderModel",
    "MT5ForSequenceClassification",
    "MT5ForTokenClassification",
    "MT5ForQuestionAnswering",
    model_types=("mt5",),
)
def mt5(c: Config) -> Model:
    return _t5(c.with_defaults(LATER_DEFAULTS), "mt5", every_layer=False)


@architecture(
    "UMT5Model",
    "UMT5ForConditionalGeneration",
    "UMT5EncoderModel",
    "UMT5ForSequenceClassification",
    "UMT5ForTokenClassification",
    "UMT5ForQuestionAnswering",
    model_types=("umt5",),
)
def umt5(c: Config) -> Model:
    return _t5(c.with_defaults(LATER_DEFAULTS), "umt5", every_layer=True)


def _t5(c: Config, family: str, every_layer: bool) -> Model:
    kind, alone = kind_of(c), class_name(c).endswith(("EncoderModel", "ForTokenClassification"))
    table = Embedding(name="shared", num_embeddings=c.size("vocab_size"), width=c.size("d_model"))
    tied = c.flag("tie_word_embeddings", default=True)
    head = _head(c, kind if class_name(c) else "", tied)
    if alone:
        encoder = _stack(c, "encoder", every_layer, before=(table,), head=head)
        return model(c, family, encoder, context=_context(c))
    decoder = _stack(c, "decoder", every_layer, before=(table,), head=head)
    encoder = _stack(c, "encoder", every_layer, before=(Reused(table),))
    tied = any(isinstance(op, Head) and op.tied for op in head)
    return model(c, family, decoder, encoder, tied=tied, context=_context(c))


def _head(c: Config, kind: str, tied: bool) -> tuple[Op, ...]:
    h = c.size("d_model")
    if kind == "ForSequenceClassification":
        return dense("classification_head.dense", h), labels(c, "classification_head.out_proj", h)
    if kind in ("ForTokenClassification", "ForQuestionAnswering"):
        return (labels(c, "classifier" if kind == "ForTokenClassification" else "qa_outputs", h),)
    if class_name(c).endswith(("LMHeadModel", "ForConditionalGeneration")) or not kind:
        return (Head(width=h, vocab_size=c.size("vocab_size"), tied=tied),)
    return ()


def _stack(
    c: Config, name: Literal["encoder", "decoder"], every_layer: bool, before: tuple[Op, ...], head: tuple[Op, ...] = ()
) -> Branch:
    """The encoder or the decoder. Its first layer holds the table of relative positions."""
    h, deep = c.size("d_model"), c.depth("num_layers")
    count = deep if name == "encoder" else c.depth("num_decoder_layers", default=deep)
    blocks = [_layer(c, Message("first {name} layer", name=name), name, relative=True)]
    if not every_layer and count > 1:
        blocks.append(_layer(c, Message("{kind} layer", kind=name), name, relative=False))
    layers = (0, *(len(blocks) - 1,) * (count - 1))
    last = norm(f"{name}.final_layer_norm", h)
    return Branch(
        name=name, kind=name, hidden_size=h, before=before, blocks=tuple(blocks), layers=layers, after=(last, *head)
    )


def _layer(c: Config, name: str, side: str, relative: bool) -> Block:
    h = c.size("d_model")
    mixer = _attention(c, "layer.0.SelfAttention", causal=side == "decoder")
    ops: tuple[Op, ...] = (norm("layer.0.layer_norm", h), mixer)
    if relative:
        numbers = c.size("relative_attention_num_buckets") * mixer.heads
        ops += (Parameter(name=f"{mixer.name}.relative_attention_bias.weight", elements=numbers, part="attention"),)
    if side == "decoder":
        ops += (norm("layer.1.layer_norm", h), _attention(c, "layer.1.EncDecAttention", memory_width=h))
    place = 2 if side == "decoder" else 1
    return Block(name, (*ops, norm(f"layer.{place}.layer_norm", h), _feed(c, f"layer.{place}.DenseReluDense")))


def _attention(c: Config, name: str, **options: Any) -> Attention:
    heads = c.size("num_heads")
    return Attention(
        name=name,
        hidden_size=c.size("d_model"),
        heads=heads,
        kv_heads=heads,
        head_dim=c.size("d_kv"),
        names=NAMES,
        **options,
    )


def _feed(c: Config, name: str) -> MLP:
    gated = c.text("feed_forward_proj").startswith("gated-")
    names = ("wi_0", "wi_1", "wo") if gated else ("", "wi", "wo")
    return MLP(name=name, hidden_size=c.size("d_model"), intermediate_size=c.size("d_ff"), gated=gated, names=names)


def _context(c: Config) -> int | None:
    """The training length, where the config states it: relative positions have no limit."""
    return c.size("n_positions", "max_position_embeddings", default=None)
