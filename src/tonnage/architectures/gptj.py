"""GPT-J and CodeGen: rotary positions, parallel attention and feed-forward after one norm, a head with a bias.

Structure and defaults: huggingface/transformers src/transformers/models/gptj and models/codegen (v5.23). CodeGen stores
q, k and v as one matrix.
"""

from tonnage.architectures._classic import full_attention, parallel_block, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import decoder, model, norm
from tonnage.architectures._registry import architecture


@architecture("GPTJForCausalLM", model_types=("gptj",))
def gptj(c: Config) -> Model:
    return _parallel(c, "gptj", fused="")


@architecture("CodeGenForCausalLM", model_types=("codegen",))
def codegen(c: Config) -> Model:
    return _parallel(c, "codegen", fused="qkv_proj")


def _parallel(c: Config, family: str, fused: str) -> Model:
    h = width(c)
    mixer = full_attention(c, name="attn", fused=fused, names=("q_proj", "k_proj", "v_proj", "out_proj"))
    feed = plain_mlp(c, "n_inner", names=("fc_in", "fc_out"))
    layer = parallel_block("decoder layer", norm("ln_1", h, "layer"), mixer, feed)
    tied = c.flag("tie_word_embeddings", default=False)
    branch = decoder(c, [layer], norm_kind="layer", tied=tied, head_bias=True, names=("wte", "wpe", "ln_f"))
    return model(c, family, branch, tied=tied)
