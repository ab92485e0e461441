"""Mixtral: Mistral with eight experts, two a token.

Structure: transformers 5.23, models/mixtral/modeling_mixtral.py; the checkpoint's names (block_sparse_moe, w1, w2, w3)
from its conversion_mapping.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import moe, stack
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, num_layers, pre_norm
from tonnage.architectures._registry import architecture


@architecture("MixtralForCausalLM", model_types=("mixtral",))
def mixtral(c: Config) -> Model:
    window = c.size("sliding_window", default=None)
    experts = moe(
        c, name="block_sparse_moe", intermediate_size=c.size("intermediate_size"), expert_names=("w1", "w3", "w2")
    )
    layer = pre_norm("decoder layer", attention(c, window=window), experts, c.size("hidden_size"))
    return stack(c, "mixtral", [0] * num_layers(c), lambda _: layer)
