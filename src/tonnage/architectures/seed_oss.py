"""Seed-OSS: Llama with biases on queries, keys and values, and wide heads.

Structure: transformers 5.23, models/seed_oss/modeling_seed_oss.py and configuration_seed_oss.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import stack
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, mlp, num_layers, pre_norm
from tonnage.architectures._registry import architecture

DEFAULTS = {"head_dim": 128}


@architecture("SeedOssForCausalLM", model_types=("seed_oss",))
def seed_oss(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    mixer = attention(
        c, bias=c.flag("attention_bias", default=True), out_bias=c.flag("attention_out_bias", default=False)
    )
    layer = pre_norm("decoder layer", mixer, mlp(c, bias=c.flag("mlp_bias", default=False)), c.size("hidden_size"))
    return stack(c, "seed_oss", [0] * num_layers(c), lambda _: layer)
