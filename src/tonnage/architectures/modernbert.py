"""ModernBERT: rotary positions, norms before the sublayers, a gated feed-forward, two windowed layers to a full one.

Structure, heads and defaults: huggingface/transformers src/transformers/models/modernbert (v5.23). The first layer has
no norm before its attention. A windowed token sees local_attention // 2 tokens on either side.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._encoder import attention, encoder, labels
from tonnage.architectures._layers import layer_kinds
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture
from tonnage.ops import MLP, Embedding, Head, Linear, Norm, Op

WINDOWED, FULL = "sliding_attention", "full_attention"


@architecture(
    "ModernBertModel",
    "ModernBertForMaskedLM",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertForQuestionAnswering",
    "ModernBertForMultipleChoice",
    model_types=("modernbert",),
)
def modernbert(c: Config) -> Model:
    h = c.size("hidden_size")
    period = c.size("global_attn_every_n_layers", default=3)
    kinds = layer_kinds(c, lambda layer: WINDOWED if layer % period else FULL)
    window = 2 * (c.size("local_attention", default=128) // 2) + 1
    blocks = (
        _layer(c, "first layer", None if kinds[0] == FULL else window, first=True),
        _layer(c, "windowed layer", window),
        _layer(c, "full layer", None),
    )
    layers = (0, *(1 if kind == WINDOWED else 2 for kind in kinds[1:]))
    before = (
        Embedding(name="embeddings.tok_embeddings", num_embeddings=c.size("vocab_size"), width=h),
        _norm(c, "embeddings.norm"),
    )
    context = c.size("max_position_embeddings", default=8192)
    return encoder(
        c, "modernbert", before, blocks, layers, _heads(c, h), width=h, context=context, final=(_norm(c, "final_norm"),)
    )


def _layer(c: Config, name: str, window: int | None, first: bool = False) -> Block:
    bias = c.flag("attention_bias", default=False)
    mixer = attention(c, name="attn", bias=bias, fused="Wqkv", names=("q", "k", "v", "Wo"), window=window, causal=False)
    feed = MLP(
        hidden_size=c.size("hidden_size"),
        intermediate_size=c.size("intermediate_size"),
        bias=c.flag("mlp_bias", default=False),
        names=("Wi", "Wi", "Wo"),
    )
    ops: tuple[Op, ...] = (mixer, _norm(c, "mlp_norm"), feed)
    return Block(name, ops if first else (_norm(c, "attn_norm"), *ops))


def _norm(c: Config, name: str) -> Norm:
    return norm(name, c.size("hidden_size"), "layer", bias=c.flag("norm_bias", default=False))


def _heads(c: Config, h: int) -> dict[str, tuple[Op, ...]]:
    bias, tied = c.flag("classifier_bias", default=False), c.flag("tie_word_embeddings", default=True)
    transform = (Linear(name="head.dense", in_features=h, out_features=h, bias=bias), _norm(c, "head.norm"))
    decoder = Head(
        name="decoder", width=h, vocab_size=c.size("vocab_size"), bias=c.flag("decoder_bias", default=True), tied=tied
    )
    classify = (*transform, labels(c, "classifier", h))
    return {
        "Model": (),
        "ForMaskedLM": (*transform, decoder),
        "ForSequenceClassification": classify,
        "ForTokenClassification": classify,
        "ForQuestionAnswering": classify,
        "ForMultipleChoice": (*transform, labels(c, "classifier", h, 1)),
    }
