"""BLOOM and BLOOMZ: positions by ALiBi, a LayerNorm after the embedding, biases, tied embedding.

Structure and defaults: huggingface/transformers src/transformers/models/bloom (v5.23). The released configs call the
width `n_embed` or `hidden_size`, and their context `seq_length`.
"""

from tonnage.architectures._classic import full_attention, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import decoder, model, norm, pre_norm
from tonnage.architectures._registry import architecture


@architecture("BloomForCausalLM", model_types=("bloom",))
def bloom(c: Config) -> Model:
    h = width(c)
    mixer = full_attention(c, name="self_attention", bias=True, fused="query_key_value", names=("q", "k", "v", "dense"))
    layer = pre_norm("decoder layer", mixer, plain_mlp(c, names=("dense_h_to_4h", "dense_4h_to_h")), h, "layer")
    tied = c.flag("tie_word_embeddings", default=True)
    first = norm("word_embeddings_layernorm", h, "layer")
    names = ("word_embeddings", "", "ln_f")
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, before=(first,), hidden_size=h, names=names)
    return model(c, "bloom", branch, tied=tied)
