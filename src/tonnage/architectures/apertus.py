"""Apertus: Llama with norms of queries and keys, and the xIELU activation instead of a gate.

Structure and defaults: transformers 5.23, models/apertus; activations.py (XIELUActivation holds four numbers: two
parameters and two buffers, all in the checkpoint).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm
from tonnage.architectures._registry import architecture
from tonnage.ops import Op, Parameter

XIELU = ("alpha_p", "alpha_n", "beta", "eps")


@architecture("ApertusForCausalLM", model_types=("apertus",))
def apertus(c: Config) -> Model:
    h = c.size("hidden_size")
    mixer = attention(c, bias=c.flag("attention_bias", default=False), qk_norm="head")
    ops: tuple[Op, ...] = (norm("attention_layernorm", h), mixer, norm("feedforward_layernorm", h), mlp(c, gated=False))
    if c.text("hidden_act", default="xielu") == "xielu":
        ops += tuple(Parameter(name=f"mlp.act_fn.{name}", elements=1, part="mlp") for name in XIELU)
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "apertus", decoder(c, [Block("decoder layer", ops)], tied=tied), tied=tied)
