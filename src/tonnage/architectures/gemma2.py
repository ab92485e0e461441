"""Gemma 2: norms before and after both sublayers, every other layer slides, the embedding table tied to the head.

Structure: transformers 5.23, models/gemma2/modeling_gemma2.py and configuration_gemma2.py (layer_types: odd layers
full, starting with a sliding one; defaults that the released files leave out).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import every_nth_full, layer_kinds, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, sandwich
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message

DEFAULTS = {"head_dim": 256, "sliding_window": 4096}


@architecture("Gemma2ForCausalLM", model_types=("gemma2",))
def gemma2(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)

    def layer(kind: str) -> Block:
        mixer = attention(c, bias=c.flag("attention_bias", default=False), window=window_of(c, kind))
        return sandwich(Message("{kind} layer", kind=kind), mixer, mlp(c), c.size("hidden_size"))

    return stack(c, "gemma2", layer_kinds(c, every_nth_full(2)), layer, tied=True)
