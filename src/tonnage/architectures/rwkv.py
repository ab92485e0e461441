"""RWKV-4, as transformers has it: RWKV/rwkv-4-*-pile and RWKV/rwkv-raven-*.

Structure and defaults: transformers 5.23, models/rwkv/modeling_rwkv.py (the first layer has one LayerNorm more, pre_ln;
intermediate_size is 4 * hidden_size, attention_hidden_size is hidden_size unless given).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, model, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.ops import ChannelMixing, Op, TimeMixing

NAMES = ("embeddings", "", "ln_out")


@architecture("RwkvForCausalLM", model_types=("rwkv",))
def rwkv(c: Config) -> Model:
    h = c.size("hidden_size")
    ops: tuple[Op, ...] = (
        norm("ln1", h, "layer"),
        TimeMixing(hidden_size=h, inner_size=c.size("attention_hidden_size", default=h)),
        norm("ln2", h, "layer"),
        ChannelMixing(hidden_size=h, intermediate_size=c.size("intermediate_size", default=4 * h)),
    )
    first = Block("first layer", (norm("pre_ln", h, "layer"), *ops))
    layers = (0,) + (1,) * (num_layers(c) - 1)
    tied = c.flag("tie_word_embeddings", default=False)
    branch = decoder(c, [first, Block("layer", ops)], layers, tied=tied, norm_kind="layer", names=NAMES)
    context = c.size("max_position_embeddings", "context_length", default=None)
    return model(c, "rwkv", branch, tied=tied, context=context)
