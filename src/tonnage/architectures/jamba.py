"""Jamba: Mamba 1 layers with attention every eighth, and a mixture of experts every second.

Structure: transformers 5.23, models/jamba/modeling_jamba.py (JambaMambaMixer with its three norms,
JambaSparseMoeBlock); defaults and the patterns of layers: configuration_jamba.py. Jamba Reasoning 3B has one expert:
all its layers are dense.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind, moe
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import inner_size, state_bytes, step_rank
from tonnage.kernel.message import Message
from tonnage.ops import Mamba, Op

DEFAULTS = {
    "num_key_value_heads": 8,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "attn_layer_period": 8,
    "attn_layer_offset": 4,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "tie_word_embeddings": False,
}
NAMES = ("embed_tokens", "", "final_layernorm")
NORMS = ("input_layernorm", "pre_ff_layernorm")


@architecture("JambaForCausalLM", model_types=("jamba",))
def jamba(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    blocks, layers = by_kind(kinds(c), lambda kind: layer(c, *kind))
    tied = c.flag("tie_word_embeddings")
    return model(c, "jamba", decoder(c, blocks, layers, tied=tied, names=NAMES), tied=tied)


def kinds(c: Config) -> list[tuple[str, str]]:
    """Mixer and feed-forward of each layer."""
    attends = c.depth("attn_layer_period"), c.depth("attn_layer_offset", smallest=0)
    routes = c.depth("expert_layer_period"), c.depth("expert_layer_offset", smallest=0)
    many = c.depth("num_experts") > 1

    def kind(i: int) -> tuple[str, str]:
        mixer = "attention" if i % attends[0] == attends[1] else "mamba"
        return mixer, "mixture" if many and i % routes[0] == routes[1] else "dense"

    return [kind(i) for i in range(num_layers(c))]


def layer(c: Config, mixer: str, feed: str) -> Block:
    mixing: Op = attention(c) if mixer == "attention" else mamba(c)
    feeding: Op = mlp(c, name="feed_forward")
    if feed == "mixture":
        feeding = moe(c, name="feed_forward", router_name="router", intermediate_size=c.size("intermediate_size"))
    return pre_norm(
        Message("{mixer} layer, {feed}", mixer=mixer, feed=feed), mixing, feeding, c.size("hidden_size"), names=NORMS
    )


def mamba(c: Config) -> Mamba:
    return Mamba(
        name="mamba",
        hidden_size=c.size("hidden_size"),
        inner_size=inner_size(c, "mamba_expand"),
        state_size=c.size("mamba_d_state"),
        conv_kernel=c.size("mamba_d_conv"),
        dt_rank=step_rank(c, "mamba_dt_rank"),
        bias=c.flag("mamba_proj_bias", default=False),
        conv_bias=c.flag("mamba_conv_bias", default=True),
        norms=True,
        state_bytes=state_bytes(c),
    )
