"""Gemma 1 and CodeGemma: Llama with heads of 256, the embedding table tied to the head.

Structure: transformers 5.23, models/gemma/modeling_gemma.py. The released files leave tie_word_embeddings out: the
class's default is true (configuration_gemma.py).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import stack
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, mlp, num_layers, pre_norm
from tonnage.architectures._registry import architecture

DEFAULTS = {"head_dim": 256}


@architecture("GemmaForCausalLM", model_types=("gemma",))
def gemma(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    mixer = attention(c, bias=c.flag("attention_bias", default=False))
    layer = pre_norm("decoder layer", mixer, mlp(c), c.size("hidden_size"))
    return stack(c, "gemma", [0] * num_layers(c), lambda _: layer, tied=True)
