"""RecurrentGemma: two layers of a gated linear recurrence, then one of local attention.

Structure and defaults: transformers 5.23, models/recurrent_gemma (the feed-forward is half of intermediate_size wide
and has biases; o_proj always has one; the head is the embedding).
"""

from tonnage.architectures._config import Config, is_one_of
from tonnage.architectures._layers import by_kind
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, listed
from tonnage.ops import GatedRecurrence, Op

DEFAULTS = {
    "attention_window_size": 2048, "conv1d_width": 4, "tie_word_embeddings": True,
    "block_types": ["recurrent", "recurrent", "attention"],
}  # fmt: skip
KNOWN = ("recurrent", "attention")
NAMES = ("embed_tokens", "", "final_norm")
NORMS = ("temporal_pre_norm", "channel_pre_norm")


@architecture("RecurrentGemmaForCausalLM", model_types=("recurrent_gemma",))
def recurrent_gemma(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    blocks, layers = by_kind(kinds(c), lambda kind: layer(c, kind))
    tied = c.flag("tie_word_embeddings")
    return model(c, "recurrent_gemma", decoder(c, blocks, layers, tied=tied, names=NAMES), tied=tied)


def layer(c: Config, kind: str) -> Block:
    mixer: Op = recurrence(c)
    if kind == "attention":
        window, bias = c.size("attention_window_size", "sliding_window"), c.flag("attention_bias", default=False)
        mixer = attention(c, name="temporal_block", bias=bias, out_bias=True, window=window)
    feed = mlp(c, name="mlp_block", intermediate_size=c.size("intermediate_size") // 2, bias=True)
    return pre_norm(Message("{kind} layer", kind=kind), mixer, feed, c.size("hidden_size"), names=NORMS)


def recurrence(c: Config) -> GatedRecurrence:
    h, heads = c.size("hidden_size"), c.size("num_attention_heads")
    width = c.size("lru_width", default=h)
    if width % heads:
        raise InvalidInput(
            "{where}: {@num_attention_heads} ({heads}) must divide lru_width ({width}).",
            where=c.where,
            heads=heads,
            width=width,
        )
    return GatedRecurrence(hidden_size=h, width=width, heads=heads, conv_kernel=c.size("conv1d_width"))


def kinds(c: Config) -> list[str]:
    """The kind of each layer: block_types, repeated to the number of layers."""
    cycle = c.items("block_types")
    for kind in cycle:
        if not is_one_of(kind, KNOWN):
            raise InvalidInput(
                "{where}: block_types may hold {known}. Got {kind}.",
                where=c.where,
                known=listed(KNOWN),
                kind=shown(kind),
            )
    if not cycle:
        raise InvalidInput(
            "{where}: block_types must name at least one of {known}.", where=c.where, known=listed(KNOWN)
        )
    return [cycle[i % len(cycle)] for i in range(num_layers(c))]
