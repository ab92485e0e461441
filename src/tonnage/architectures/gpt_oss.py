"""gpt-oss: every other layer slides over 128 tokens, a learned logit a head (attention sink), biases everywhere,
experts.

Structure: transformers 5.23, models/gpt_oss/modeling_gpt_oss.py (GptOssExperts: one tensor for all experts' gate and
up, with biases; GptOssTopKRouter with a bias). The checkpoint stores the experts' matrices in MXFP4.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import every_nth_full, layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.message import Message

DEFAULTS = {"head_dim": 64, "sliding_window": 128, "attention_bias": True}


@architecture("GptOssForCausalLM", model_types=("gpt_oss",))
def gpt_oss(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)

    def layer(kind: str) -> Block:
        mixer = attention(c, bias=c.flag("attention_bias"), sinks=True, window=window_of(c, kind))
        experts = moe(
            c,
            intermediate_size=c.size("intermediate_size"),
            bias=True,
            router_name="router",
            router_bias=True,
            expert_names=("gate_up_proj", "gate_up_proj", "down_proj"),
        )
        return pre_norm(Message("{kind} layer", kind=kind), mixer, experts, c.size("hidden_size"))

    return stack(c, "gpt_oss", layer_kinds(c, every_nth_full(2)), layer)
