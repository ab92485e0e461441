"""Falcon H1: every layer runs attention and Mamba 2 side by side on the same input, then a feed-forward.

Structure: transformers 5.23, models/falcon_h1/modeling_falcon_h1.py (FalconH1DecoderLayer; the mixer's norm has a
weight only with mamba_rms_norm, and out_proj its bias from projectors_bias); defaults: configuration_falcon_h1.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import mamba2

DEFAULTS = {
    "mamba_d_ssm": 1024,
    "mamba_n_heads": 128,
    "mamba_n_groups": 1,
    "mamba_d_state": 256,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_rms_norm": False,
    "tie_word_embeddings": False,
}
NAMES = ("embed_tokens", "", "final_layernorm")


@architecture("FalconH1ForCausalLM", model_types=("falcon_h1",))
def falcon_h1(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h = c.size("hidden_size")
    inner = None if _says_null(c, "mamba_d_ssm") else c.size("mamba_d_ssm")
    out_bias = c.flag("projectors_bias", default=False)
    mixer = mamba2(c, inner_size=inner, norm=c.flag("mamba_rms_norm"), out_bias=out_bias)
    parallel = attention(c, bias=c.flag("attention_bias", default=False))
    feed = mlp(c, name="feed_forward", bias=c.flag("mlp_bias", default=False))
    ops = (norm("input_layernorm", h), mixer, parallel, norm("pre_ff_layernorm", h), feed)
    tied = c.flag("tie_word_embeddings")
    branch = decoder(c, [Block("hybrid layer", ops)], tied=tied, names=NAMES)
    return model(c, "falcon_h1", branch, tied=tied)


def _says_null(c: Config, field: str) -> bool:
    """Whether the config sets the field to null: then mamba_expand decides, else the class's default."""
    return field in c.fields and c.raw(field) is None
