"""Mamba 2: Mamba-Codestral 7B and the Mamba 2 checkpoints of state-spaces in transformers' layout.

Structure: transformers 5.23, models/mamba2/modeling_mamba2.py (Mamba2Mixer: the gated norm always has its weight);
defaults: configuration_mamba2.py, where num_heads * head_dim must equal expand * hidden_size.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, model, norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import inner_size, state_bytes
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Mamba2

DEFAULTS = {
    "num_heads": 128,
    "head_dim": 64,
    "state_size": 128,
    "expand": 2,
    "conv_kernel": 4,
    "n_groups": 8,
    "use_conv_bias": True,
    "tie_word_embeddings": False,
}
NAMES = ("embeddings", "", "norm_f")


@architecture("Mamba2ForCausalLM", model_types=("mamba2",))
def mamba2(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h = c.size("hidden_size")
    tied = c.flag("tie_word_embeddings")
    layer = Block("mamba 2 layer", (norm("norm", h), mixer(c)))
    return model(c, "mamba2", decoder(c, [layer], tied=tied, names=NAMES), tied=tied)


def mixer(c: Config) -> Mamba2:
    heads, width, inner = c.size("num_heads"), c.size("head_dim"), inner_size(c, "expand")
    if heads * width != inner:
        raise InvalidInput(
            "{where}: num_heads ({heads}) * {@head_dim} ({width}) must be expand * {@hidden_size} ({inner}).",
            where=c.where,
            heads=heads,
            width=width,
            inner=inner,
        )
    return Mamba2(
        hidden_size=c.size("hidden_size"),
        heads=heads,
        head_dim=width,
        state_size=c.size("state_size"),
        groups=c.size("n_groups"),
        conv_kernel=c.size("conv_kernel"),
        bias=c.flag("use_bias", default=False),
        conv_bias=c.flag("use_conv_bias"),
        state_bytes=state_bytes(c),
    )
