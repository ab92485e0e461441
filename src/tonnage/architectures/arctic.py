"""Snowflake Arctic: a mixture of 128 experts in parallel with a dense feed-forward of the model's own width.

Structure: vllm-project/vllm vllm/model_executor/models/arctic.py (ArcticDecoderLayer: every moe_layer_frequency-th
layer is a mixture, with use_residual the dense one runs beside it); defaults:
vllm/transformers_utils/configs/arctic.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import by_kind, moe
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.ops import Op

MATRICES = ("w1", "w3", "w2")
DEFAULTS = {"num_local_experts": 8, "num_experts_per_tok": 1, "moe_layer_frequency": 2, "use_residual": False}


@architecture("ArcticForCausalLM", model_types=("arctic",))
def arctic(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    every = c.depth("moe_layer_frequency")
    kinds = ["mixture" if (i + 1) % every == 0 else "dense" for i in range(num_layers(c))]
    blocks, layers = by_kind(kinds, lambda kind: layer(c, kind))
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "arctic", decoder(c, blocks, layers, tied=tied), tied=tied)


def layer(c: Config, kind: str) -> Block:
    h = c.size("hidden_size")
    ops: tuple[Op, ...] = (norm("input_layernorm", h), attention(c), norm("post_attention_layernorm", h))
    if kind == "dense":
        return Block("dense layer", (*ops, mlp(c, name="block_sparse_moe.mlp", names=MATRICES)))
    ops += (moe(c, name="block_sparse_moe", expert_names=MATRICES, intermediate_size=c.size("intermediate_size")),)
    if c.flag("use_residual"):
        ops += (norm("residual_layernorm", h), mlp(c, name="residual_mlp", names=MATRICES, intermediate_size=h))
    return Block("mixture layer", ops)
