"""Zamba 1 and 2: Mamba layers, some of which first run one of a few shared transformer blocks.

Structure and defaults: transformers 5.23, models/zamba and models/zamba2. A shared block reads the layer's input beside
the embedding, so it is twice as wide as the model, and a matrix of the layer's own leads back. In Zamba 2 there are
num_mem_blocks of them in turn, and every layer adds adapters of its own to their gate and up projection (with
use_shared_attention_adapter to queries, keys and values too). Each such layer keeps keys and values of its own.
Zyphra's first configs use other names.
"""

from collections.abc import Sequence
from typing import Any

from tonnage.architectures._classic import head_width
from tonnage.architectures._config import Config, is_one_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, model, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import inner_size, state_bytes, step_rank, whole_width
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import listed
from tonnage.ops import MLP, Attention, Linear, Mamba, Mamba2, Op, Reused

KINDS = {"mamba": "mamba", "linear_attention": "mamba", "m": "mamba", "hybrid": "hybrid", "g": "hybrid"}
NAMES = ("embed_tokens", "", "final_layernorm")
FUSED = ("gate_up_proj", "gate_up_proj", "down_proj")
ZAMBA = {
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "num_key_value_heads": 16,
    "attn_layer_period": 6,
    "attn_layer_offset": 4,
    "tie_word_embeddings": True,
}
ZAMBA2 = {
    "mamba_d_state": 64,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_ngroups": 1,
    "num_mem_blocks": 1,
    "adapter_rank": 128,
    "tie_word_embeddings": True,
}


@architecture("Zamba2ForCausalLM", model_types=("zamba2",))
def zamba2(c: Config) -> Model:
    c = c.with_defaults(ZAMBA2)
    shared = [
        shared_ops(c, FUSED, c.flag("add_bias_linear", default=False))
        for _ in range(c.size("num_mem_blocks", largest=1024))
    ]
    return zamba_stack(c, mamba2(c), shared, adapters(c))


@architecture("ZambaForCausalLM", model_types=("zamba",))
def zamba(c: Config) -> Model:
    c = c.with_defaults(ZAMBA)
    return zamba_stack(c, mamba(c), [shared_ops(c, ("gate_proj", "up_proj", "down_proj"), bias=False)], ())


def zamba_stack(c: Config, mixer: Op, shared: Sequence[tuple[Op, ...]], own: tuple[Op, ...]) -> Model:
    """The Model of Zamba's layers: each shared block is counted where it first runs, and reused after that."""
    h = c.size("hidden_size")
    alone = (norm("input_layernorm", h), mixer)
    back = Linear(name="linear", in_features=h, out_features=h)
    blocks = [Block("mamba layer", alone)]
    blocks += [Block("layer with a shared block", (*ops, *own, back, *alone)) for ops in shared]
    blocks += [Block("layer with a shared block again", (*map(Reused, ops), *own, back, *alone)) for ops in shared]
    layers, runs = [], 0
    for kind in kinds(c):
        turn, again = runs % len(shared), runs >= len(shared)
        layers.append(0 if kind == "mamba" else 1 + turn + len(shared) * again)
        runs += kind == "hybrid"
    used = sorted(set(layers))
    tied = c.flag("tie_word_embeddings")
    branch = decoder(c, [blocks[i] for i in used], [used.index(i) for i in layers], tied=tied, names=NAMES)
    return model(c, "zamba2", branch, tied=tied)


def shared_ops(c: Config, matrices: tuple[str, str, str], bias: bool) -> tuple[Op, ...]:
    """The transformer block: attention over the doubled width, then a feed-forward of the model's width."""
    h, heads = c.size("hidden_size"), c.size("num_attention_heads")
    width = c.size("attention_hidden_size", default=2 * h)
    head = c.size("attention_head_dim", default=None) or head_width(c, 2 * h, heads)
    groups = c.size("num_key_value_heads", "num_query_groups", default=heads)
    inner = c.size("intermediate_size", "ffn_hidden_size", default=4 * h)
    out: Any = {"name": "self_attn.o_proj", "in_features": heads * head, "out_features": h, "keeps_input": False}
    return (
        norm("input_layernorm", width),
        Attention(hidden_size=width, heads=heads, kv_heads=groups, head_dim=head, out=False),
        Linear(**out, split="tensor", part="attention"),
        norm("pre_ff_layernorm", h),
        MLP(name="feed_forward", hidden_size=h, intermediate_size=inner, bias=bias, names=matrices),
    )


def adapters(c: Config) -> tuple[Op, ...]:
    """The weights that a layer adds to the shared block: a low-rank pair for each projection that it adapts."""
    h, rank = c.size("hidden_size"), c.size("adapter_rank", "lora_rank")
    inner = c.size("intermediate_size", "ffn_hidden_size", default=4 * h)
    factors_of_all = factors("feed_forward.gate_up_proj_adapter_list", h, rank, 2 * inner, "mlp")
    if c.flag("use_shared_attention_adapter", "use_shared_attention_lora", default=False):
        for name in ("q", "k", "v"):
            factors_of_all += factors(f"self_attn.linear_{name}_adapter_list", 2 * h, rank, 2 * h, "attention")
    return factors_of_all


def factors(name: str, inputs: int, rank: int, outputs: int, part: Any) -> tuple[Op, ...]:
    return (
        Linear(name=f"{name}.0", in_features=inputs, out_features=rank, part=part, keeps_input=False),
        Linear(name=f"{name}.1", in_features=rank, out_features=outputs, part=part),
    )


def mamba2(c: Config) -> Mamba2:
    h, expand = c.size("hidden_size"), c.number("mamba_expand", "expansion_factor")
    inner = whole_width(c, expand * h)
    heads = c.size("n_mamba_heads", default=None) or inner // c.size("mamba_headdim")
    if inner % heads:
        raise InvalidInput(
            "{where}: n_mamba_heads ({heads}) must divide mamba_expand * {@hidden_size} ({inner}).",
            where=c.where,
            heads=heads,
            inner=inner,
        )
    return Mamba2(
        name="mamba",
        hidden_size=h,
        heads=heads,
        head_dim=inner // heads,
        state_size=c.size("state_size", "mamba_d_state"),
        groups=c.size("mamba_ngroups"),
        conv_kernel=c.size("conv_dimension", "mamba_d_conv"),
        bias=c.flag("add_bias_linear", default=False),
        state_bytes=state_bytes(c),
    )


def mamba(c: Config) -> Mamba:
    """Mamba 1 in n_mamba_heads heads: each has its part of x_proj and dt_proj, together as large as one head's."""
    h = c.size("hidden_size")
    return Mamba(
        name="mamba",
        hidden_size=h,
        inner_size=inner_size(c, "mamba_expand"),
        state_size=c.size("mamba_d_state"),
        conv_kernel=c.size("mamba_d_conv"),
        dt_rank=step_rank(c, "mamba_dt_rank"),
        joiner="_",
        bias=c.flag("mamba_proj_bias", default=False),
        conv_bias=c.flag("mamba_conv_bias", default=True),
        state_bytes=state_bytes(c),
    )


def kinds(c: Config) -> list[str]:
    """layers_block_type, else the rule of the class: Zamba's period and offset, Zamba 2's own list of 54 layers."""
    layers = num_layers(c)
    listed_kinds = c.items("layers_block_type", "layer_types", default=None)
    if listed_kinds is None:
        listed_kinds = usual(c, layers)
    if len(listed_kinds) != layers:
        raise InvalidInput(
            "{where}: layers_block_type must have {layers} items, one a layer. Got {count}.",
            where=c.where,
            layers=layers,
            count=len(listed_kinds),
        )
    for kind in listed_kinds:
        if not is_one_of(kind, KINDS):
            raise InvalidInput(
                "{where}: layers_block_type may hold {kinds}. Got {kind}.",
                where=c.where,
                kinds=listed(KINDS),
                kind=shown(kind),
            )
    return [KINDS[kind] for kind in listed_kinds]


def usual(c: Config, layers: int) -> list[str]:
    period, offset = c.depth("attn_layer_period", default=None), c.depth("attn_layer_offset", default=None, smallest=0)
    if period is None or offset is None:
        return [*"m", *(["m"] * 5 + ["g"]) * 7, *"mmmmg", *"mmmg", *"mm"]
    return ["g" if i == 2 or (i > 2 and (i - 3) % period == offset) else "m" for i in range(layers)]
