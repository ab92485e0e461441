"""Ling and Ring 1 and 2 (Bailing): grouped keys, experts with shared ones, in Ling 2 behind dense layers.

Structure: vllm-project/vllm vllm/model_executor/models/bailing_moe.py, which reads both; inclusionAI/Ling-V2
modeling_bailing_moe_v2.py (query_layernorm and key_layernorm on each head, expert_bias of the router).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, moe, stack
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.deepseek import draft_layers
from tonnage.kernel.message import Message

V1 = {"first_k_dense_replace": 0, "num_shared_experts": 0, "use_qk_norm": False, "moe_router_enable_expert_bias": False}
V2 = {"first_k_dense_replace": 0, "num_shared_experts": 1, "use_qk_norm": True, "moe_router_enable_expert_bias": True}


@architecture("BailingMoeForCausalLM", model_types=("bailing_moe",))
def bailing_moe(c: Config) -> Model:
    return _bailing(c.with_defaults(V1))


@architecture("BailingMoeV2ForCausalLM", model_types=("bailing_moe_v2",))
def bailing_moe_v2(c: Config) -> Model:
    return _bailing(c.with_defaults(V2))


def _bailing(c: Config) -> Model:
    shared = c.size("moe_intermediate_size") * c.depth("num_shared_experts", smallest=0)
    qk_norm = "head" if c.flag("use_qk_norm") else ""
    corrected = c.flag("moe_router_enable_expert_bias")
    bias = c.flag("use_bias", default=False)

    def layer(kind: str) -> Block:
        mixer = attention(c, bias=c.flag("use_qkv_bias", default=False), out_bias=bias, qk_norm=qk_norm)
        feed = mlp(c) if kind == "dense" else moe(c, shared_size=shared, correction_bias=corrected)
        return pre_norm(Message("{kind} layer", kind=kind), mixer, feed, c.size("hidden_size"))

    return stack(c, "bailing_moe", feed_kinds(c), layer, drafts=draft_layers(c, layer("sparse")))
