"""StarCoder: GPT-BigCode (SantaCoder, StarCoder 1: one key/value head, learned positions) and StarCoder 2 (rotary,
windows).

Structure and defaults: huggingface/transformers src/transformers/models/gpt_bigcode and models/starcoder2 (v5.23).
"""

from tonnage.architectures._classic import full_attention, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, decoder, model, pre_norm
from tonnage.architectures._registry import architecture


@architecture("GPTBigCodeForCausalLM", model_types=("gpt_bigcode",))
def gpt_bigcode(c: Config) -> Model:
    groups = {"kv_heads": 1} if c.flag("multi_query", default=True) else {}
    mixer = full_attention(c, name="attn", bias=True, fused="c_attn", names=("q", "k", "v", "c_proj"), **groups)
    feed = plain_mlp(c, "n_inner", names=("c_fc", "c_proj"))
    layer = pre_norm("decoder layer", mixer, feed, width(c), "layer", names=("ln_1", "ln_2"))
    positions = c.size("n_positions", "max_position_embeddings")
    tied = c.flag("tie_word_embeddings", default=True)
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, positions=positions, names=("wte", "wpe", "ln_f"))
    return model(c, "gpt_bigcode", branch, tied=tied, context=positions)


@architecture("Starcoder2ForCausalLM", model_types=("starcoder2",))
def starcoder2(c: Config) -> Model:
    bias = c.flag("use_bias", default=True)
    mixer = attention(c, bias=bias, window=c.size("sliding_window", default=None))
    feed = plain_mlp(c, "intermediate_size", names=("c_fc", "c_proj"), bias=bias)
    tied = c.flag("tie_word_embeddings", default=True)
    layer = pre_norm("decoder layer", mixer, feed, width(c), "layer")
    return model(c, "starcoder2", decoder(c, [layer], norm_kind="layer", tied=tied), tied=tied)
