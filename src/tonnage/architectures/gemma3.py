"""Gemma 3, its language model alone: five sliding layers, then a full one, and RMSNorm on each head's query and
key.

Structure: transformers 5.23, models/gemma3/modeling_gemma3.py and configuration_gemma3.py. Files of the multimodal
sizes hold only the fields of text_config that differ from Gemma3TextConfig's defaults, so those defaults stand here.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import every_nth_full, layer_kinds, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, sandwich
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message

DEFAULTS = {
    "vocab_size": 262_208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
}


@architecture("Gemma3ForCausalLM", "Gemma3TextModel", model_types=("gemma3_text",))
def gemma3(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    kinds = layer_kinds(c, every_nth_full(c.size("sliding_window_pattern", "_sliding_window_pattern")))
    causal = not c.flag(
        "use_bidirectional_attention", default=False
    )  # EmbeddingGemma sees both ways and caches nothing

    def layer(kind: str) -> Block:
        mixer = attention(
            c, bias=c.flag("attention_bias", default=False), qk_norm="head", window=window_of(c, kind), causal=causal
        )
        return sandwich(Message("{kind} layer", kind=kind), mixer, mlp(c), c.size("hidden_size"))

    return stack(c, "gemma3", kinds, layer, tied=True)
