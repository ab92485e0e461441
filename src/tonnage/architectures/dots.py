"""dots.llm1: Qwen3's attention with DeepSeek-V3's experts.

Structure: transformers 5.23, models/dots1/modeling_dots1.py and configuration_dots1.py (layers from max_window_layers
on slide if sliding_window is given; the router's correction bias is a stored buffer).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, layer_kinds, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.deepseek import mixture
from tonnage.kernel.message import Message


@architecture("Dots1ForCausalLM", model_types=("dots1",))
def dots(c: Config) -> Model:
    slides = c.raw("sliding_window") is not None
    first = c.depth("max_window_layers", default=62, smallest=0)
    kinds = layer_kinds(c, lambda layer: "sliding_attention" if slides and layer >= first else "full_attention")

    def layer(kind: tuple[str, str]) -> Block:
        mixer = attention(c, bias=c.flag("attention_bias", default=False), qk_norm="head", window=window_of(c, kind[0]))
        feed = mlp(c) if kind[1] == "dense" else mixture(c, corrected=True)
        return pre_norm(Message("{feed} {kind} layer", feed=kind[1], kind=kind[0]), mixer, feed, c.size("hidden_size"))

    return stack(c, "dots", list(zip(kinds, feed_kinds(c), strict=True)), layer)
