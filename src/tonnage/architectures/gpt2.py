"""GPT-2 and GPT-3: learned positions, LayerNorm before attention and feed-forward, biases everywhere, tied embedding.

Structure and defaults: huggingface/transformers src/transformers/models/gpt2 (v5.23). GPT-3 is "the same model and
architecture as GPT-2" (Brown2020, sec. 2.1) with alternating dense and locally banded attention, whose band nobody
published: it is counted as dense. No GPT-3 config exists; its class name here is "GPT3".
"""

from tonnage.architectures._classic import full_attention, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import decoder, model, pre_norm
from tonnage.architectures._registry import architecture

DEFAULTS = {"vocab_size": 50257, "n_positions": 1024}
GPT3_DEFAULTS = {"vocab_size": 50257, "n_positions": 2048}


@architecture("GPT2LMHeadModel", model_types=("gpt2",))
def gpt2(c: Config) -> Model:
    return _gpt(c.with_defaults(DEFAULTS), "gpt2")


@architecture("GPT3", model_types=("gpt3",))
def gpt3(c: Config) -> Model:
    return _gpt(c.with_defaults(GPT3_DEFAULTS), "gpt3")


def _gpt(c: Config, family: str) -> Model:
    positions = c.size("n_positions", "max_position_embeddings", "n_ctx")
    mixer = full_attention(c, name="attn", bias=True, fused="c_attn", names=("q", "k", "v", "c_proj"))
    feed = plain_mlp(c, "n_inner", "intermediate_size", names=("c_fc", "c_proj"))
    layer = pre_norm("decoder layer", mixer, feed, width(c), "layer", names=("ln_1", "ln_2"))
    tied = c.flag("tie_word_embeddings", default=True)
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, positions=positions, names=("wte", "wpe", "ln_f"))
    return model(c, family, branch, tied=tied, context=positions)
