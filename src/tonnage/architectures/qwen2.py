"""Qwen1.5, Qwen2 and Qwen2.5, with QwQ, Qwen2.5-Coder and Qwen2.5-Math: Llama with biases on queries, keys and
values.

Structure: transformers 5.23, models/qwen2/modeling_qwen2.py (Qwen2Attention) and configuration_qwen2.py (layer_types:
with use_sliding_window, layers from max_window_layers on slide). The language models of Qwen2-VL, Qwen2.5-VL and
Qwen2.5-Omni have the same layers (models/qwen2_5_vl/modeling_qwen2_5_vl.py).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message


@architecture("Qwen2ForCausalLM", model_types=("qwen2", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text"))
def qwen2(c: Config) -> Model:
    h = c.size("hidden_size")

    def layer(kind: str) -> Block:
        mixer = attention(c, bias=True, out_bias=False, window=window_of(c, kind))
        return pre_norm(Message("{kind} layer", kind=kind), mixer, mlp(c), h)

    return stack(c, "qwen2", window_kinds(c), layer)


def window_kinds(c: Config) -> list[str]:
    """Qwen's rule: sliding layers from max_window_layers on, only if use_sliding_window is set."""
    slides = c.flag("use_sliding_window", default=False) and c.raw("sliding_window") is not None
    first = c.depth("max_window_layers", smallest=0) if slides else 0
    return layer_kinds(c, lambda layer: "sliding_attention" if slides and layer >= first else "full_attention")
