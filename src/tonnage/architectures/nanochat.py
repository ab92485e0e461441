"""nanochat: squared-relu feed-forward of two matrices and norms without weights, on queries and keys too.

Structure: transformers 5.24, models/nanochat/modeling_nanochat.py; karpathy/nanochat scripts/base_train.py (a width of
64 a layer, heads of 128).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, decoder, mlp, model, pre_norm
from tonnage.architectures._registry import architecture


@architecture("NanoChatForCausalLM", model_types=("nanochat",))
def nanochat(c: Config) -> Model:
    tied = c.flag("tie_word_embeddings", default=False)
    mixer = attention(c, bias=c.flag("attention_bias", default=False))
    feed = mlp(c, gated=False, names=("", "fc1", "fc2"))
    layer = pre_norm("decoder layer", mixer, feed, c.size("hidden_size"), weight=False)
    return model(c, "nanochat", decoder(c, [layer], tied=tied, norm_options={"weight": False}), tied=tied)
