"""Qwen3, dense and mixtures, and the language models of Qwen3-VL and Qwen3-Omni: RMSNorm on each head's query and
key.

Structure: transformers 5.23, models/qwen3/modeling_qwen3.py, models/qwen3_moe/modeling_qwen3_moe.py (all layers slide
if use_sliding_window), models/qwen3_vl_moe/modeling_qwen3_vl_moe.py. Real files leave out nothing that decides a size.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.qwen2 import window_kinds
from tonnage.architectures.qwen2_moe import feed_forward, mixture_kinds
from tonnage.kernel.message import Message
from tonnage.ops import Attention

DEFAULTS = {"head_dim": 128}  # Qwen3Config and Qwen3VLTextConfig; the mixture's class derives it


@architecture("Qwen3ForCausalLM", model_types=("qwen3", "qwen3_vl_text"))
def qwen3(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    h = c.size("hidden_size")
    return stack(
        c,
        "qwen3",
        window_kinds(c),
        lambda kind: pre_norm(Message("{kind} layer", kind=kind), mixer(c, kind), mlp(c), h),
    )


@architecture("Qwen3MoeForCausalLM", model_types=("qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text"))
def qwen3_moe(c: Config) -> Model:
    h = c.size("hidden_size")
    slides = c.flag("use_sliding_window", default=False) and c.raw("sliding_window") is not None
    attention_kind = "sliding_attention" if slides else "full_attention"

    def layer(kind: str) -> Block:
        return pre_norm(Message("{kind} layer", kind=kind), mixer(c, attention_kind), feed_forward(c, kind), h)

    return stack(c, "qwen3", mixture_kinds(c), layer)


def mixer(c: Config, kind: str) -> Attention:
    bias = c.flag("attention_bias", default=False)
    return attention(c, bias=bias, qk_norm="head", window=window_of(c, kind))
