"""Granite 4: layers of Mamba 2 or attention, each with a shared feed-forward and, in Tiny and Small, with experts.

Structure: transformers 5.23, models/granitemoehybrid/modeling_granitemoehybrid.py (GraniteMoeHybridDecoderLayer: no
experts where num_local_experts is 0; the shared feed-forward is always there); defaults:
configuration_granitemoehybrid.py. The dense Granite 4.0 Micro, 1B and 350M are of this class too, with attention in all
layers.
"""

from tonnage.architectures._config import Config, is_one_of
from tonnage.architectures._layers import by_kind
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import mamba2
from tonnage.architectures.granite import FUSED, mixture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, listed
from tonnage.ops import Op

DEFAULTS = {
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "shared_intermediate_size": 1024,
    "mamba_n_heads": 128,
    "mamba_n_groups": 1,
    "mamba_d_state": 256,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "tie_word_embeddings": False,
}
MIXERS = {"mamba": "mamba", "linear_attention": "mamba", "attention": "attention", "full_attention": "attention"}


@architecture("GraniteMoeHybridForCausalLM", model_types=("granitemoehybrid",))
def granite_hybrid(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    blocks, layers = by_kind(kinds(c), lambda kind: layer(c, kind))
    tied = c.flag("tie_word_embeddings")
    return model(c, "granite_hybrid", decoder(c, blocks, layers, tied=tied), tied=tied)


def layer(c: Config, kind: str) -> Block:
    mixer: Op = mamba2(c) if kind == "mamba" else attention(c, bias=c.flag("attention_bias", default=False))
    return pre_norm(Message("{kind} layer", kind=kind), mixer, feed_forward(c), c.size("hidden_size"))


def feed_forward(c: Config) -> Op:
    if c.depth("num_local_experts", smallest=0):
        return mixture(c)
    return mlp(c, name="shared_mlp", names=FUSED, intermediate_size=c.size("shared_intermediate_size"))


def kinds(c: Config) -> list[str]:
    """The mixer of each layer, "mamba" or "attention": layer_types, by default Mamba 2 in all."""
    listed_kinds = c.items("layer_types", "layers_block_type", default=None)
    if listed_kinds is None:
        return ["mamba"] * num_layers(c)
    if len(listed_kinds) != num_layers(c):
        raise InvalidInput(
            "{where}: layer_types must have {num_layers} items, one a layer. Got {count}.",
            where=c.where,
            num_layers=num_layers(c),
            count=len(listed_kinds),
        )
    for kind in listed_kinds:
        if not is_one_of(kind, MIXERS):
            raise InvalidInput(
                "{where}: layer_types may hold {ratios}. Got {unknown}.",
                where=c.where,
                ratios=listed(MIXERS),
                unknown=shown(kind),
            )
    return [MIXERS[kind] for kind in listed_kinds]
