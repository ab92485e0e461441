"""OLMo 1, 2 and 3, and OLMo Hybrid.

Structure and defaults: transformers 5.23, models/olmo (LayerNorm without weights), olmo2 (norms after attention and
feed-forward, and over all queries and all keys), olmo3 (three layers of four slide), olmo_hybrid (three of four layers
are gated delta nets with norms before them; its norms of queries and keys are OLMo 2's).
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind, every_nth_full, layer_kinds, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message
from tonnage.ops import GatedDeltaNet, Op

DELTA_INPUTS = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("a_proj", "a"), ("b_proj", "b"), ("g_proj", "z"))


@architecture("OlmoForCausalLM", model_types=("olmo",))
def olmo(c: Config) -> Model:
    tied = c.flag("tie_word_embeddings", default=False)
    mixer = attention(c, bias=c.flag("attention_bias", default=False))
    layer = pre_norm("decoder layer", mixer, mlp(c), c.size("hidden_size"), "layer", weight=False)
    branch = decoder(c, [layer], tied=tied, norm_kind="layer", norm_options={"weight": False})
    return model(c, "olmo", branch, tied=tied)


@architecture("Olmo2ForCausalLM", model_types=("olmo2",))
def olmo2(c: Config) -> Model:
    layer = post_norm(c, "decoder layer", attends(c), mlp(c))
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "olmo", decoder(c, [layer], tied=tied), tied=tied)


@architecture("Olmo3ForCausalLM", model_types=("olmo3",))
def olmo3(c: Config) -> Model:
    c = c.with_defaults({"sliding_window": 4096})

    def layer(kind: str) -> Block:
        return post_norm(c, Message("{kind} layer", kind=kind), attends(c, window=window_of(c, kind)), mlp(c))

    return stack(c, "olmo", layer_kinds(c, every_nth_full(4)), layer)


@architecture("OlmoHybridForCausalLM", model_types=("olmo_hybrid",))
def olmo_hybrid(c: Config) -> Model:
    c = c.with_defaults({"linear_conv_kernel_dim": 4})
    known = ("linear_attention", "full_attention")
    kinds = layer_kinds(c, lambda i: known[i % 4 == 3], known)
    blocks, layers = by_kind(kinds, lambda kind: hybrid_layer(c, kind))
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "olmo", decoder(c, blocks, layers, tied=tied), tied=tied)


def hybrid_layer(c: Config, kind: str) -> Block:
    if kind == "full_attention":
        return post_norm(c, Message("{kind} layer", kind=kind), attends(c), mlp(c))
    return pre_norm(Message("{kind} layer", kind=kind), delta_net(c), mlp(c), c.size("hidden_size"))


def delta_net(c: Config) -> GatedDeltaNet:
    h, heads = c.size("hidden_size"), c.size("num_attention_heads")
    key_heads = c.size("linear_num_key_heads", default=heads)
    key_dim = c.size("linear_key_head_dim", default=int(0.75 * h / key_heads))
    return GatedDeltaNet(
        hidden_size=h,
        key_heads=key_heads,
        value_heads=c.size("linear_num_value_heads", default=heads),
        key_dim=key_dim,
        value_dim=c.size("linear_value_head_dim", default=2 * key_dim),
        conv_kernel=c.size("linear_conv_kernel_dim"),
        inputs=DELTA_INPUTS,
        norm_name="o_norm",
        out_name="o_proj",
    )


def attends(c: Config, **options: Any) -> Op:
    return attention(c, bias=c.flag("attention_bias", default=False), qk_norm="full", **options)


def post_norm(c: Config, name: str, mixer: Op, feed: Op) -> Block:
    """A layer with norms on the outputs of its two sublayers."""
    h = c.size("hidden_size")
    return Block(name, (mixer, norm("post_attention_layernorm", h), feed, norm("post_feedforward_layernorm", h)))
