"""Baichuan 7B and 13B, 1 and 2: Llama with one matrix for q, k and v; 13B has ALiBi instead of rotary positions.

Source: the remote code modeling_baichuan.py, as vllm-project/vllm vllm/model_executor/models/baichuan.py reads it.
Baichuan 2 normalises the head's rows (NormHead), which adds no parameters. The 7B of the first generation writes its
class BaiChuan.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, decoder, mlp, model, pre_norm
from tonnage.architectures._registry import architecture


@architecture("BaichuanForCausalLM", "BaiChuanForCausalLM", model_types=("baichuan",))
def baichuan(c: Config) -> Model:
    layer = pre_norm("decoder layer", attention(c, fused="W_pack"), mlp(c), c.size("hidden_size"))
    tied = c.flag("tie_word_embeddings", default=False)
    context = c.size("max_position_embeddings", "model_max_length", default=None)
    return model(c, "baichuan", decoder(c, [layer], tied=tied), tied=tied, context=context)
