"""OPT and XGLM: learned (OPT) or sinusoidal (XGLM) positions, LayerNorm, biases, tied embedding.

Structure and defaults: huggingface/transformers src/transformers/models/opt and models/xglm (v5.23). OPT's position
table has two rows more than positions. OPT-350m embeds in a smaller width (`word_embed_proj_dim`), normalises after
each sublayer and has no final norm.
"""

from tonnage.architectures._classic import full_attention, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import decoder, model, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.ops import Embedding, Head, Linear, Norm, Op

OFFSET = 2  # OPTLearnedPositionalEmbedding.offset


@architecture("OPTForCausalLM", model_types=("opt",))
def opt(c: Config) -> Model:
    positions = c.size("max_position_embeddings", default=2048)
    tied = c.flag("tie_word_embeddings", default=True)
    h, narrow = width(c), c.size("word_embed_proj_dim", default=width(c))
    vocabulary = c.size("vocab_size", default=50272)
    table = Embedding(name="embed_positions", num_embeddings=positions + OFFSET, width=h, split="replicated")
    before: tuple[Op, ...] = (Embedding(num_embeddings=vocabulary, width=narrow), table)
    after: tuple[Op, ...] = (_norm(c, "final_layer_norm"),) if _ends_with_norm(c) else ()
    if narrow != h:
        before += (Linear(name="project_in", in_features=narrow, out_features=h),)
        after += (Linear(name="project_out", in_features=h, out_features=narrow),)
    after += (Head(width=narrow, vocab_size=vocabulary, tied=tied),)
    branch = Branch(
        name="decoder",
        kind="decoder",
        hidden_size=h,
        before=before,
        blocks=(_layer(c),),
        layers=(0,) * num_layers(c),
        after=after,
    )
    return model(c, "opt", branch, tied=tied, context=positions)


@architecture("XGLMForCausalLM", model_types=("xglm",))
def xglm(c: Config) -> Model:
    tied = c.flag("tie_word_embeddings", default=True)
    branch = decoder(c, [_layer(c)], norm_kind="layer", tied=tied, names=("embed_tokens", "", "layer_norm"))
    return model(c, "xglm", branch, tied=tied)


def _layer(c: Config) -> Block:
    bias = c.flag("enable_bias", default=True)
    mixer = full_attention(c, bias=bias, names=("q_proj", "k_proj", "v_proj", "out_proj"))
    feed = plain_mlp(c, "ffn_dim", name="", names=("fc1", "fc2"), bias=bias)
    first, second = _norm(c, "self_attn_layer_norm"), _norm(c, "final_layer_norm")
    if c.flag("do_layer_norm_before", default=True):
        return Block("decoder layer", (first, mixer, second, feed))
    return Block("decoder layer", (mixer, first, feed, second))


def _norm(c: Config, name: str) -> Norm:
    return norm(name, width(c), "layer", weight=c.flag("layer_norm_elementwise_affine", default=True))


def _ends_with_norm(c: Config) -> bool:
    return c.flag("do_layer_norm_before", default=True) and not c.flag("_remove_final_layer_norm", default=False)
