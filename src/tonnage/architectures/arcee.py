"""Arcee AFM (Llama with a squared-relu feed-forward of two matrices) and Trinity (AFMoE: gated attention, windows,
experts).

Structure: transformers 5.23, models/arcee/modeling_arcee.py and models/afmoe/modeling_afmoe.py (every
global_attn_every_n_layers-th layer is full; num_dense_layers dense ones first; expert_bias is a stored parameter).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import every_nth_full, layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message
from tonnage.ops import MoE

DEFAULTS = {"head_dim": 128, "sliding_window": 1024, "global_attn_every_n_layers": 4, "num_dense_layers": 1}


@architecture("ArceeForCausalLM", model_types=("arcee",))
def arcee(c: Config) -> Model:
    mixer = attention(c, bias=c.flag("attention_bias", default=False))
    feed = mlp(c, gated=False, bias=c.flag("mlp_bias", default=False))
    layer = pre_norm("decoder layer", mixer, feed, c.size("hidden_size"))
    return stack(c, "arcee", [0] * num_layers(c), lambda _: layer)


@architecture("AfmoeForCausalLM", model_types=("afmoe",))
def afmoe(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    dense = c.depth("num_dense_layers", smallest=0)
    feeds = ["sparse" if layer >= dense else "dense" for layer in range(num_layers(c))]
    kinds = layer_kinds(c, every_nth_full(c.size("global_attn_every_n_layers")))
    return stack(c, "arcee", list(zip(kinds, feeds, strict=True)), lambda kind: _layer(c, *kind))


def _layer(c: Config, kind: str, feed: str) -> Block:
    h = c.size("hidden_size")
    mixer = attention(
        c,
        bias=c.flag("attention_bias", default=False),
        qk_norm="head",
        gate_name="gate_proj",
        window=window_of(c, kind),
    )
    last = mlp(c) if feed == "dense" else _mixture(c)
    names = ("input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm")
    first, second, third, fourth = (norm(name, h) for name in names)
    return Block(Message("{feed} {kind} layer", feed=feed, kind=kind), (first, mixer, second, third, last, fourth))


def _mixture(c: Config) -> MoE:
    width = c.size("moe_intermediate_size")
    shared = c.depth("num_shared_experts", default=2, smallest=0)
    return moe(
        c,
        intermediate_size=width,
        router_name="router.gate",
        shared_size=width * shared,
        correction_bias=True,
        correction_name="expert_bias",
    )
