"""Nemotron 3 and 4 with Minitron (squared relu, LayerNorm), and Llama-Nemotron, which a search pruned layer by layer.

Structure: transformers 5.23, models/nemotron/modeling_nemotron.py (NemotronLayerNorm1P has weight and bias).
Llama-Nemotron (DeciLM, NemotronNAS): vllm-project/vllm vllm/model_executor/models/nemotron_nas.py and nvidia's
modeling_decilm.py: a layer without attention or feed-forward has no norm for it either; `replace_with_linear` puts one
square matrix in its place.
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import Linear, Op

MULTIPLE = 256  # nemotron_nas.py, _ffn_mult_to_intermediate_size


@architecture("NemotronForCausalLM", model_types=("nemotron",))
def nemotron(c: Config) -> Model:
    tied = c.flag("tie_word_embeddings", default=False)
    mixer = attention(c, bias=c.flag("attention_bias", default=False))
    feed = mlp(c, gated=False, bias=c.flag("mlp_bias", default=False))
    layer = pre_norm("decoder layer", mixer, feed, c.size("hidden_size"), "layer")
    return model(c, "nemotron", decoder(c, [layer], tied=tied, norm_kind="layer"), tied=tied)


@architecture("DeciLMForCausalLM", "NemotronNASForCausalLM", model_types=("nemotron-nas", "deci"))
def deci(c: Config) -> Model:
    """Layers of unequal widths: block_configs (Llama-Nemotron), or num_key_value_heads_per_layer (DeciLM-7B)."""
    tied = c.flag("tie_word_embeddings", default=False)
    kinds = searched_kinds(c) if "block_configs" in c else grouped_kinds(c)
    blocks, layers = by_kind(kinds, lambda kind: layer_of(c, *kind))
    return model(c, "nemotron", decoder(c, blocks, layers, tied=tied), tied=tied)


def grouped_kinds(c: Config) -> list[tuple[Any, Any]]:
    """Attention with the number of key heads in the list, and the same feed-forward in all layers."""
    heads = c.items("num_key_value_heads_per_layer", length=num_layers(c))
    return [(("heads", count, None), ("width", c.size("intermediate_size"))) for count in heads]


def searched_kinds(c: Config) -> list[tuple[Any, Any]]:
    """The kinds of attention and feed-forward of each entry of block_configs; equal layers get equal kinds."""
    layer_kinds = []
    for i, fields in enumerate(c.items("block_configs", length=num_layers(c))):
        entry = Config(fields, f"{c.where}: block_configs[{i}]", c.assumed, f"{c.path}block_configs[{i}].")
        layer_kinds.append((attention_kind(c, entry.section("attention")), feed_kind(c, entry.section("ffn"))))
    return layer_kinds


def attention_kind(c: Config, part: Config) -> tuple[Any, ...] | None:
    if part.flag("no_op", default=False):
        return None
    if part.flag("replace_with_linear", default=False):
        return ("linear",)
    window = part.size("window_length", default=None)
    if window is not None:
        window += part.size("num_sink_tokens", default=0, smallest=0)
    heads, group = c.size("num_attention_heads"), part.size("n_heads_in_group")
    if heads % group:
        raise InvalidInput(
            "{where}: n_heads_in_group must divide {@num_attention_heads} ({heads}). Got {group}.",
            where=part.where,
            heads=heads,
            group=group,
        )
    return "heads", heads // group, window


def feed_kind(c: Config, part: Config) -> tuple[Any, ...] | None:
    if part.flag("no_op", default=False):
        return None
    if part.flag("replace_with_linear", default=False):
        return ("linear",)
    multiple = part.number("ffn_mult", default=None)
    if multiple is None:
        return "width", part.size("intermediate_size")
    return "width", -(-int(2 * multiple * c.size("hidden_size") / 3) // MULTIPLE) * MULTIPLE


def layer_of(c: Config, mixing: tuple[Any, ...] | None, feeding: tuple[Any, ...] | None) -> Block:
    h = c.size("hidden_size")
    ops: tuple[Op, ...] = ()
    if mixing:
        ops += (norm("input_layernorm", h), mixer_of(c, mixing))
    if feeding:
        ops += (norm("post_attention_layernorm", h), feed_of(c, feeding))
    return Block(
        Message(
            "layer with {mixing} and {feeding}",
            mixing=_shown(mixing, "attention"),
            feeding=_shown(feeding, "feed-forward"),
        ),
        ops,
    )


def mixer_of(c: Config, kind: tuple[Any, ...]) -> Op:
    h, bias = c.size("hidden_size"), c.flag("attention_bias", default=False)
    if kind[0] == "linear":
        return Linear(name="self_attn.linear_attn", in_features=h, out_features=h, bias=bias, part="attention")
    _, groups, window = kind
    heads = c.size("num_attention_heads")
    if not isinstance(groups, int) or groups < 1 or heads % groups:
        raise InvalidInput(
            "{where}: a layer's KV heads must divide {@num_attention_heads} ({heads}). Got {groups}.",
            where=c.where,
            heads=heads,
            groups=shown(groups),
        )
    return attention(c, kv_heads=groups, window=window, bias=bias)


def feed_of(c: Config, kind: tuple[Any, ...]) -> Op:
    h = c.size("hidden_size")
    if kind[0] == "linear":
        return Linear(name="mlp.linear_mlp", in_features=h, out_features=h, part="mlp")
    return mlp(c, intermediate_size=kind[1], bias=c.flag("mlp_bias", default=False))


def _shown(kind: tuple[Any, ...] | None, what: str) -> str:
    if kind is None:
        return f"no {what}"
    return Message("a matrix for {what}", what=what) if kind[0] == "linear" else f"{what} of {kind[1]}"
