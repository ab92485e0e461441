"""GPT-NeoX: Pythia, GPT-NeoX-20B, RedPajama-INCITE, Dolly 2, StableLM-alpha; two LayerNorms, biases, untied embedding.

Structure and defaults: huggingface/transformers src/transformers/models/gpt_neox (v5.23). Parallel and sequential
residuals (`use_parallel_residual`) have the same weights; side by side, the two norms read the same input.
"""

from tonnage.architectures._classic import full_attention, parallel_block, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, model, norm
from tonnage.architectures._registry import architecture


@architecture("GPTNeoXForCausalLM", model_types=("gpt_neox",))
def gpt_neox(c: Config) -> Model:
    bias = c.flag("attention_bias", default=True)
    mixer = full_attention(c, name="attention", bias=bias, fused="query_key_value", names=("q", "k", "v", "dense"))
    feed = plain_mlp(c, "intermediate_size", names=("dense_h_to_4h", "dense_4h_to_h"))
    first, second = (norm(name, width(c), "layer") for name in ("input_layernorm", "post_attention_layernorm"))
    if c.flag("use_parallel_residual", default=True):
        layer = parallel_block("decoder layer", first, mixer, feed, second)
    else:
        layer = Block("decoder layer", (first, mixer, second, feed))
    tied = c.flag("tie_word_embeddings", default=False)
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, names=("embed_in", "", "final_layer_norm"))
    return model(c, "gpt_neox", branch, tied=tied)
