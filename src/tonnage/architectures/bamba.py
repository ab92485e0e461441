"""Bamba: Mamba 2 layers with a few of attention, each with a feed-forward.

Structure: transformers 5.23, models/bamba/modeling_bamba.py (BambaDecoderLayer); defaults: configuration_bamba.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import mamba2
from tonnage.kernel.message import Message

DEFAULTS = {
    "mamba_n_heads": 128,
    "mamba_n_groups": 1,
    "mamba_d_state": 256,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "tie_word_embeddings": False,
}
NAMES = ("embed_tokens", "", "final_layernorm")
NORMS = ("input_layernorm", "pre_ff_layernorm")


@architecture("BambaForCausalLM", model_types=("bamba",))
def bamba(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    blocks, layers = by_kind(kinds(c), lambda kind: layer(c, kind))
    tied = c.flag("tie_word_embeddings")
    return model(c, "bamba", decoder(c, blocks, layers, tied=tied, names=NAMES), tied=tied)


def layer(c: Config, kind: str) -> Block:
    mixer = mamba2(c) if kind == "mamba" else attention(c, bias=c.flag("attention_bias", default=False))
    feed = mlp(c, name="feed_forward", bias=c.flag("mlp_bias", default=False))
    return pre_norm(Message("{kind} layer", kind=kind), mixer, feed, c.size("hidden_size"), names=NORMS)


def kinds(c: Config) -> list[str]:
    """Layers in attn_layer_indices are of attention, all others of Mamba 2."""
    full = c.layers("attn_layer_indices", default=[])
    return ["attention" if i in full else "mamba" for i in range(num_layers(c))]
