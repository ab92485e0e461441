"""Llama 4, its language model alone: three layers that see the chunk of 8192 tokens they are in, then one that sees
all.

Structure: transformers 5.23, models/llama4/modeling_llama4.py and configuration_llama4.py. Layers with rotary
positions are chunked, every no_rope_layer_interval-th has none and is full. Every interleave_moe_layer_step-th layer
is a mixture with one shared expert of the experts' width; the others are dense, intermediate_size_mlp wide. The norm
on queries and keys has no weights. The released files leave out the fields in DEFAULTS, and an absent
tie_word_embeddings means untied.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.ops import Op

DEFAULTS = {
    "vocab_size": 202_048,
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16_384,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 131_072,
    "num_experts_per_tok": 1,
    "num_local_experts": 16,
    "interleave_moe_layer_step": 1,
    "no_rope_layer_interval": 4,
    "attention_chunk_size": 8192,
}
NAMES = ("gate_up_proj", "gate_up_proj", "down_proj")


@architecture("Llama4ForCausalLM", model_types=("llama4_text",))
def llama4(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    sparse = _mixture_layers(c)
    feeds = ["sparse" if layer in sparse else "dense" for layer in range(num_layers(c))]

    def layer(kind: tuple[str, str]) -> Block:
        window = window_of(c, kind[0], "attention_chunk_size")
        mixer = attention(c, bias=c.flag("attention_bias", default=False), window=window)
        return pre_norm(
            Message("{feed} {kind} layer", feed=kind[1], kind=kind[0]),
            mixer,
            _feed_forward(c, kind[1]),
            c.size("hidden_size"),
        )

    return stack(c, "llama4", list(zip(_mixer_kinds(c), feeds, strict=True)), layer)


def _feed_forward(c: Config, kind: str) -> Op:
    if kind == "dense":
        return mlp(c, name="feed_forward", intermediate_size=c.size("intermediate_size_mlp"))
    width = c.size("intermediate_size")
    return moe(
        c,
        name="feed_forward",
        intermediate_size=width,
        shared_size=width,
        shared_name="shared_expert",
        router_name="router",
        expert_names=NAMES,
    )


def _mixer_kinds(c: Config) -> list[str]:
    rotary = c.items("no_rope_layers", default=None) or None  # the released files may hold an empty list
    interval = c.size("no_rope_layer_interval")
    if rotary is not None and len(rotary) < num_layers(c):
        raise InvalidInput(
            "{where}: no_rope_layers must have {num_layers} items, one for each layer. Got {count}.",
            where=c.where,
            num_layers=num_layers(c),
            count=len(rotary),
        )

    def usual(layer: int) -> str:
        chunked = rotary[layer] if rotary is not None else (layer + 1) % interval
        return "chunked_attention" if chunked else "full_attention"

    return layer_kinds(c, usual, ("chunked_attention", "full_attention"))


def _mixture_layers(c: Config) -> frozenset[int]:
    if "moe_layers" in c:
        return c.layers("moe_layers")
    step = c.size("interleave_moe_layer_step")
    return frozenset(range(step - 1, num_layers(c), step))
