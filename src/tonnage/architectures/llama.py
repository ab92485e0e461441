"""Llama 1 to 3, and every model that is Llama with other sizes: Mistral, Yi, SmolLM 1 and 2, DeepSeek-LLM, Vicuna."""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import attention, decoder, mlp, model, pre_norm
from tonnage.architectures._registry import architecture


@architecture(
    "LlamaForCausalLM",
    "LLaMAForCausalLM",
    "MistralForCausalLM",
    "YiForCausalLM",
    "AquilaForCausalLM",
    "MiniCPMForCausalLM",
    model_types=("llama", "mistral", "Yi", "aquila", "minicpm"),
)
def llama(c: Config) -> Model:
    tied = c.flag("tie_word_embeddings", default=False)
    window = c.size("sliding_window", default=None)
    mixer = attention(c, bias=c.flag("attention_bias", default=False), window=window)
    layer = pre_norm("decoder layer", mixer, mlp(c, bias=c.flag("mlp_bias", default=False)), c.size("hidden_size"))
    return model(c, "llama", decoder(c, [layer], tied=tied), tied=tied)
