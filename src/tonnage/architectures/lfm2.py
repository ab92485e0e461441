"""LFM2: layers of a gated short convolution with a few of grouped attention; dense and mixtures of experts.

Structure and defaults: transformers 5.23, models/lfm2 (Lfm2MLP: the width is two thirds of what the config says,
rounded up to block_multiple_of, unless block_auto_adjust_ff_dim is false; block_ff_dim overrides intermediate_size;
tie_embedding tie_word_embeddings) and models/lfm2_moe (num_dense_layers first; one bias an expert that only the choice
sees).
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind, layer_kinds, moe
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import whole_width
from tonnage.kernel.message import Message
from tonnage.ops import MoE, Op, ShortConvolution

DEFAULTS = {
    "num_key_value_heads": 8,
    "conv_L_cache": 3,
    "block_multiple_of": 256,
    "block_ffn_dim_multiplier": 1.0,
    "block_auto_adjust_ff_dim": True,
    "tie_word_embeddings": True,
}
MOE_DEFAULTS = {
    "num_key_value_heads": 8,
    "conv_L_cache": 3,
    "num_dense_layers": 2,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1792,
    "use_expert_bias": True,
    "tie_word_embeddings": True,
}
KNOWN = ("conv", "full_attention")
MATRICES = ("w1", "w3", "w2")
NAMES = ("embed_tokens", "", "embedding_norm")


@architecture("Lfm2ForCausalLM", model_types=("lfm2",))
def lfm2(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    feed = mlp(c, name="feed_forward", names=MATRICES, intermediate_size=width(c))
    return lfm2_stack(c, [(mixer, feed) for mixer in mixers(c)])


@architecture("Lfm2MoeForCausalLM", model_types=("lfm2_moe",))
def lfm2_moe(c: Config) -> Model:
    c = c.with_defaults(MOE_DEFAULTS)
    first = c.depth("num_dense_layers", smallest=0)
    dense = mlp(c, name="feed_forward", names=MATRICES)
    sparse = moe(
        c,
        name="feed_forward",
        expert_names=MATRICES,
        correction_bias=c.flag("use_expert_bias"),
        correction_name="expert_bias",
    )
    return lfm2_stack(c, [(mixer, dense if i < first else sparse) for i, mixer in enumerate(mixers(c))])


def lfm2_stack(c: Config, kinds: list[tuple[str, Op]]) -> Model:
    blocks, layers = by_kind(kinds, lambda kind: layer(c, *kind))
    tied = c.flag("tie_embedding", "tie_word_embeddings")
    return model(c, "lfm2", decoder(c, blocks, layers, tied=tied, names=NAMES), tied=tied)


def layer(c: Config, mixer: str, feed: Op) -> Block:
    mixing: Op = attends(c)
    if mixer == "conv":
        bias = c.flag("conv_bias", default=False)
        mixing = ShortConvolution(hidden_size=c.size("hidden_size"), conv_kernel=c.size("conv_L_cache"), bias=bias)
    name = (
        Message("{mixer} layer, mixture", mixer=mixer)
        if isinstance(feed, MoE)
        else Message("{mixer} layer, dense", mixer=mixer)
    )
    return pre_norm(name, mixing, feed, c.size("hidden_size"), names=("operator_norm", "ffn_norm"))


def attends(c: Config, **options: Any) -> Op:
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    return attention(c, names=names, qk_norm="head", norm_names=("q_layernorm", "k_layernorm"), **options)


def mixers(c: Config) -> list[str]:
    """layer_types, else attention in the layers of full_attn_idxs and a convolution in all others."""
    full = c.layers("full_attn_idxs", default=list(range(num_layers(c))))
    return layer_kinds(c, lambda i: "full_attention" if i in full else "conv", KNOWN)


def width(c: Config) -> int:
    nominal = c.size("block_ff_dim", "intermediate_size")
    if not c.flag("block_auto_adjust_ff_dim"):
        return nominal
    multiple = c.size("block_multiple_of")
    return -(-whole_width(c, c.number("block_ffn_dim_multiplier") * int(2 * nominal / 3)) // multiple) * multiple
