"""SmolLM3: Llama where every fourth layer has no rotary positions, which changes neither weights nor cache.

Structure and defaults: transformers 5.23, models/smollm3 (layers without positions slide only if use_sliding_window
says so).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message

DEFAULTS = {"num_key_value_heads": 4, "no_rope_layer_interval": 4}


@architecture("SmolLM3ForCausalLM", model_types=("smollm3",))
def smollm3(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    bias, feed = c.flag("attention_bias", default=False), mlp(c, bias=c.flag("mlp_bias", default=False))
    slides = c.flag("use_sliding_window", default=False) and "sliding_window" in c

    def layer(kind: str) -> Block:
        window = window_of(c, kind) if slides else None
        return pre_norm(
            Message("{kind} layer", kind=kind), attention(c, bias=bias, window=window), feed, c.size("hidden_size")
        )

    rotates = rotary(c)
    usual = layer_kinds(c, lambda i: "sliding_attention" if slides and not rotates[i] else "full_attention")
    return stack(c, "smollm3", usual, layer, tied=True)


def rotary(c: Config) -> list[int]:
    """1 for a layer with rotary positions, 0 for one without."""
    layers = num_layers(c)
    flags = c.items("no_rope_layers", default=None, length=layers)
    interval = c.depth("no_rope_layer_interval")
    return [int((i + 1) % interval != 0) for i in range(layers)] if flags is None else flags
