"""Hymba: attention heads and Mamba heads side by side in a layer, behind one projection, with learned first tokens.

Structure: nvidia/Hymba-1.5B-Base modeling_hymba.py, as stored in NVlabs/hymba: HymbaBlock projects query, key, value, x
and gate at once; values are as wide as Mamba's inner size, so wider than keys; a layer that reuses another's keys and
values projects only the query, and caches nothing; all layers but those of global_attn_idx see a window, and the
learned tokens (num_memory_tokens), which every request holds in addition to its own.
"""

from tonnage.architectures._classic import head_width
from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import inner_size, state_bytes, step_rank
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.ops import Mamba, Op, Parameter

DEFAULTS = {
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "num_memory_tokens": 128,
    "mamba_inner_layernorms": True,
    "kv_reuse_every_i_layer": -1,
    "tie_word_embeddings": True,
}
NAMES = ("embed_tokens", "", "final_layernorm")
LAYERS = {  # by whether the layer sees everything, and whether it reuses the keys and values of the one before
    (True, False): "global layer",
    (True, True): "global layer, keys and values reused",
    (False, False): "sliding layer",
    (False, True): "sliding layer, keys and values reused",
}


@architecture("HymbaForCausalLM", model_types=("hymba",))
def hymba(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    experts = c.depth("num_experts", default=1)
    if experts > 1:
        raise InvalidInput(
            "{where}: {@num_experts} must be 1: no released Hymba has experts. Got {experts}.",
            where=c.where,
            experts=experts,
        )
    blocks, layers = by_kind(kinds(c), lambda kind: layer(c, *kind))
    tied, memory = c.flag("tie_word_embeddings"), c.size("num_memory_tokens", smallest=0)
    before = (Parameter(name="memory_tokens", elements=memory * c.size("hidden_size"), part="other"),) if memory else ()
    return model(c, "hymba", decoder(c, blocks, layers, tied=tied, before=before, names=NAMES), tied=tied)


def kinds(c: Config) -> list[tuple[bool, bool]]:
    """For each layer: whether it sees all tokens, and whether it reuses another layer's keys and values."""
    layers = num_layers(c)
    slides = "sliding_window" in c
    full = c.layers("global_attn_idx", default=[]) if slides else frozenset(range(layers))
    groups = c.items("kv_reuse_group", default=None)
    every = c.size("kv_reuse_every_i_layer", smallest=-1)
    if groups is not None:
        if not all(isinstance(group, list) and all(type(layer) is int for layer in group) for group in groups):
            raise InvalidInput(
                "{where}: kv_reuse_group must hold lists of layers. Got {groups}.",
                where=c.where,
                groups=shown(groups),
            )
        reusing = {layer for group in groups for layer in group[1:]}
    else:
        reusing = {i for i in range(layers) if every > 0 and i % every}
    return [(i in full, i in reusing) for i in range(layers)]


def layer(c: Config, full: bool, reuses: bool) -> Block:
    h, inner, heads = c.size("hidden_size"), inner_size(c, "mamba_expand"), c.size("num_attention_heads")
    window = None if full else c.size("sliding_window") + c.size("num_memory_tokens", smallest=0)
    attends = attention(
        c,
        name="mamba",
        fused="in_proj",
        out=False,
        value_dim=head_width(c, inner, heads),
        window=window,
        has_kv=not reuses,
        shares_cache=reuses,
    )
    ops: tuple[Op, ...] = (
        norm("input_layernorm", h),
        attends,
        norm("mamba.pre_avg_layernorm1", inner),
        mamba(c),
        norm("mamba.pre_avg_layernorm2", inner),
        norm("pre_moe_layernorm", h),
        mlp(c, name="moe.experts.0"),
    )
    return Block(LAYERS[full, reuses], ops)


def mamba(c: Config) -> Mamba:
    """Mamba's part of the layer: the last parts of the projection, and the one out_proj of both kinds of heads."""
    return Mamba(
        name="mamba",
        hidden_size=c.size("hidden_size"),
        inner_size=inner_size(c, "mamba_expand"),
        state_size=c.size("mamba_d_state"),
        conv_kernel=c.size("mamba_d_conv"),
        dt_rank=step_rank(c, "mamba_dt_rank"),
        bias=c.flag("mamba_proj_bias", default=False),
        conv_bias=c.flag("mamba_conv_bias", default=True),
        norms=c.flag("mamba_inner_layernorms"),
        norm_names=("dt_layernorm", "B_layernorm", "C_layernorm"),
        joiner=".0.",
        state_bytes=state_bytes(c),
    )
