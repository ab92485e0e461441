"""Mistral's later models: Ministral (some layers slide), Ministral 3 and Mistral Small 4 (latent attention and
experts).

Structure: transformers 5.23, models/ministral/modeling_ministral.py, models/ministral3/modeling_ministral3.py,
models/mistral4/modeling_mistral4.py (DeepSeek-V3's layer without the router's correction bias). Mistral 7B, Nemo,
Small 1 to 3 and Large 1 and 2 are Llama with a window: llama.py. Mistral Large 3 is DeepSeek-V3 (vllm-project/vllm
vllm/model_executor/models/mistral_large_3.py): deepseek.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, layer_kinds, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.deepseek import indexed_attention, mixture
from tonnage.kernel.message import Message


@architecture("MinistralForCausalLM", model_types=("ministral",))
def ministral(c: Config) -> Model:
    slides = c.raw("sliding_window") is not None

    def layer(kind: str) -> Block:
        return pre_norm(
            Message("{kind} layer", kind=kind), attention(c, window=window_of(c, kind)), mlp(c), c.size("hidden_size")
        )

    return stack(c, "mistral", layer_kinds(c, lambda _: "sliding_attention" if slides else "full_attention"), layer)


@architecture("Ministral3ForCausalLM", model_types=("ministral3",))
def ministral3(c: Config) -> Model:
    c = c.with_defaults({"head_dim": 128})
    window = c.size("sliding_window", default=None)
    layer = pre_norm("decoder layer", attention(c, window=window), mlp(c), c.size("hidden_size"))
    return stack(c, "mistral", [0] * num_layers(c), lambda _: layer)


@architecture("Mistral4ForCausalLM", model_types=("mistral4",))
def mistral4(c: Config) -> Model:
    def layer(kind: str) -> Block:
        feed = mlp(c) if kind == "dense" else mixture(c)
        return pre_norm(Message("{kind} layer", kind=kind), indexed_attention(c), feed, c.size("hidden_size"))

    return stack(c, "mistral", feed_kinds(c), layer)
