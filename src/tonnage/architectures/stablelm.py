"""StableLM 2, StableLM-3B-4E1T and Persimmon: LayerNorm around a gated (StableLM) or squared-ReLU (Persimmon)
feed-forward.

Structure and defaults: huggingface/transformers src/transformers/models/stablelm and models/persimmon (v5.23). StableLM
2 12B normalises each query and key head with a vector of its own (`qk_layernorm`) and has one norm a layer
(`use_parallel_residual`).
"""

from tonnage.architectures._classic import full_attention, parallel_block, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, pre_norm
from tonnage.architectures._registry import architecture


@architecture("StableLmForCausalLM", "StableLMEpochForCausalLM", model_types=("stablelm", "stablelm_epoch"))
def stablelm(c: Config) -> Model:
    h = width(c)
    # a vector for each head: as many numbers as a norm over all heads at once
    norms = "full" if c.flag("qk_layernorm", default=False) else ""
    names = ("q_layernorm.norms", "k_layernorm.norms")
    mixer = attention(c, bias=c.flag("use_qkv_bias", default=False), out_bias=False, qk_norm=norms, norm_names=names)
    if c.flag("use_parallel_residual", default=False):
        layer = parallel_block("decoder layer", norm("input_layernorm", h, "layer"), mixer, mlp(c))
    else:
        layer = pre_norm("decoder layer", mixer, mlp(c), h, "layer")
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "stablelm", decoder(c, [layer], norm_kind="layer", tied=tied), tied=tied)


@architecture("PersimmonForCausalLM", model_types=("persimmon",))
def persimmon(c: Config) -> Model:
    norms = "layer-head" if c.flag("qk_layernorm", default=True) else ""
    mixer = full_attention(
        c,
        bias=True,
        fused="query_key_value",
        names=("q", "k", "v", "dense"),
        qk_norm=norms,
        norm_names=("q_layernorm", "k_layernorm"),
    )
    feed = plain_mlp(c, "intermediate_size", names=("dense_h_to_4h", "dense_4h_to_h"))
    layer = pre_norm("decoder layer", mixer, feed, width(c), "layer")
    tied = c.flag("tie_word_embeddings", default=False)
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, names=("embed_tokens", "", "final_layernorm"))
    return model(c, "persimmon", branch, tied=tied)
