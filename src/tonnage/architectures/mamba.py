"""Mamba 1: state-spaces/mamba-*-hf and Falcon Mamba.

Structure: transformers 5.23, models/mamba/modeling_mamba.py (MambaMixer; one norm a layer, no feed-forward) and
models/falcon_mamba (the same weights; its extra norms of the step, B and C have none). Defaults:
configuration_mamba.py; a given intermediate_size overrides expand * hidden_size there (Falcon Mamba 7B says expand 16
and intermediate_size 8192). Published configs of state-spaces also carry the names of mamba_ssm: d_model, n_layer,
d_inner.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, model, norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import inner_size, state_bytes, step_rank
from tonnage.ops import Mamba

DEFAULTS = {"expand": 2, "state_size": 16, "conv_kernel": 4, "tie_word_embeddings": True, "use_conv_bias": True}
NAMES = ("embeddings", "", "norm_f")


@architecture("MambaForCausalLM", "FalconMambaForCausalLM", model_types=("mamba", "falcon_mamba"))
def mamba(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h = c.size("hidden_size", "d_model")
    tied = c.flag("tie_word_embeddings")
    layer = Block("mamba layer", (norm("norm", h), mixer(c)))
    return model(c, "mamba", decoder(c, [layer], tied=tied, hidden_size=h, names=NAMES), tied=tied)


def mixer(c: Config) -> Mamba:
    return Mamba(
        hidden_size=c.size("hidden_size", "d_model"),
        inner_size=c.size("intermediate_size", default=None) or inner_size(c, "expand"),
        state_size=c.size("state_size"),
        conv_kernel=c.size("conv_kernel"),
        dt_rank=step_rank(c, "time_step_rank"),
        bias=c.flag("use_bias", default=False),
        conv_bias=c.flag("use_conv_bias"),
        state_bytes=state_bytes(c),
    )
