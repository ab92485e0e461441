"""DeBERTa v2 and v3: attention whose content and relative positions have projections of their own, unless they share
them.

Structure, heads and defaults: huggingface/transformers src/transformers/models/deberta_v2 (v5.23). The released v3
configs name no class. The products with the position projections are left out of the attention's arithmetic.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._encoder import attention, dense, encoder, heads, labels, language, layer_norm, mlp, tables
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import num_layers
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.ops import Attention, Convolution, Embedding, Linear, Op

DEFAULTS = {"max_position_embeddings": 512, "type_vocab_size": 0}
SELF = ("self.query_proj", "self.key_proj", "self.value_proj", "output.dense")


@architecture(
    "DebertaV2Model",
    "DebertaV2ForMaskedLM",
    "DebertaV2ForSequenceClassification",
    "DebertaV2ForTokenClassification",
    "DebertaV2ForQuestionAnswering",
    "DebertaV2ForMultipleChoice",
    model_types=("deberta-v2",),
)
def deberta_v2(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h, positions = c.size("hidden_size"), c.size("max_position_embeddings")
    before = (*_embeddings(c, h, positions), *_relative(c, h, positions))
    wide = c.size("pooler_hidden_size", default=h)
    pooler, narrow = dense("pooler.dense", wide), c.size("embedding_size", default=h)
    names = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder")
    classify, choose = (pooler, labels(c, "classifier", wide)), (pooler, labels(c, "classifier", wide, 1))
    known = heads(c, h, spoken=language(c, h, narrow, names), classify=classify, choose=choose)
    return encoder(c, "deberta-v2", before, (_layer(c, h),), (0,) * num_layers(c), known, width=h, context=positions)


def _embeddings(c: Config, h: int, positions: int) -> tuple[Op, ...]:
    narrow = c.size("embedding_size", default=h)
    absolute = positions if c.flag("position_biased_input", default=True) else 0
    ops: tuple[Op, ...] = tables(c, narrow, absolute, c.size("type_vocab_size", smallest=0))
    if narrow != h:
        ops += (Linear(name="embeddings.embed_proj", in_features=narrow, out_features=h),)
    return (*ops, layer_norm("embeddings.LayerNorm", h))


def _relative(c: Config, h: int, positions: int) -> tuple[Op, ...]:
    """The encoder's own operations: a table of relative positions, its norm, and a convolution beside the first
    layer.
    """
    ops: tuple[Op, ...] = ()
    if c.flag("relative_attention", default=False):
        farthest = c.size("max_relative_positions", default=-1, smallest=-1)
        buckets = c.size("position_buckets", default=-1, smallest=-1)
        span = buckets if buckets > 0 else farthest if farthest > 0 else positions
        ops += (Embedding(name="encoder.rel_embeddings", num_embeddings=2 * span, width=h, split="replicated"),)
    if "layer_norm" in [part.strip() for part in c.text("norm_rel_ebd", default="none").lower().split("|")]:
        ops += (layer_norm("encoder.LayerNorm", h),)
    kernel = c.size("conv_kernel_size", default=0, smallest=0)
    if kernel:
        groups = c.size("conv_groups", default=1)
        if h % groups:
            raise InvalidInput(
                "{where}: conv_groups ({groups}) must divide {@hidden_size} ({h}).",
                where=c.where,
                groups=groups,
                h=h,
            )
        inputs = h // groups
        ops += (Convolution(name="encoder.conv.conv", in_channels=inputs, out_channels=h, kernel=kernel, bias=True),)
        ops += (layer_norm("encoder.conv.LayerNorm", h),)
    return ops


def _layer(c: Config, h: int) -> Block:
    mixer = attention(c, name="attention", names=SELF, causal=False)
    first, second = layer_norm("attention.output.LayerNorm", h), layer_norm("output.LayerNorm", h)
    return Block(
        "encoder layer", (mixer, *_positions(c, mixer), first, mlp(c, "intermediate.dense", "output.dense"), second)
    )


def _positions(c: Config, mixer: Attention) -> tuple[Op, ...]:
    """Projections of the relative positions, where they do not share those of the content."""
    if not c.flag("relative_attention", default=False) or c.flag("share_att_key", default=False):
        return ()
    attention_types = c.raw("pos_att_type") or []
    if not isinstance(attention_types, str | list):
        raise InvalidInput(
            "{where}: pos_att_type must be a list of c2p and p2c, or one text. Got {given}.",
            where=c.where,
            given=shown(attention_types),
        )
    kinds = attention_types.split("|") if isinstance(attention_types, str) else attention_types
    wanted = {"c2p": "attention.self.pos_key_proj", "p2c": "attention.self.pos_query_proj"}
    return tuple(dense(name, mixer.hidden_size, mixer.query_width) for kind, name in wanted.items() if kind in kinds)
