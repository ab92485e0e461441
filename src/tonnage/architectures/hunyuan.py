"""Hunyuan, dense and mixtures, and Hy3: norms on each head's query and key.

Structure: transformers 5.23, models/hunyuan_v1_dense, models/hunyuan_v1_moe (experts as wide as intermediate_size, one
shared MLP, moe_topk that may be a list) and models/hy_v3 (first layer dense, the router's correction bias a stored
buffer). Hy3's checkpoint holds num_nextn_predict_layers more layers, which transformers ignores: vllm-project/vllm
vllm/model_executor/models/hy_v3_mtp.py.
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, moe, stack
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.deepseek import draft_layers
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import MoE

NORMS = ("query_layernorm", "key_layernorm")


@architecture("HunYuanDenseV1ForCausalLM", model_types=("hunyuan_v1_dense",))
def hunyuan(c: Config) -> Model:
    mixer = attention(c, bias=c.flag("attention_bias", default=False), qk_norm="head", norm_names=NORMS)
    layer = pre_norm("decoder layer", mixer, mlp(c), c.size("hidden_size"))
    return stack(c, "hunyuan", [0] * num_layers(c), lambda _: layer)


@architecture("HunYuanMoEV1ForCausalLM", model_types=("hunyuan_v1_moe",))
def hunyuan_moe(c: Config) -> Model:
    mixer = attention(c, bias=c.flag("attention_bias", default=False), qk_norm="head", norm_names=NORMS)
    shared = _one(c, "num_shared_expert", default=1) * c.size("intermediate_size")
    experts = moe(
        c,
        num_experts=_one(c, "num_experts"),
        top_k=_one(c, "moe_topk"),
        intermediate_size=c.size("intermediate_size"),
        router_name="gate.wg",
        shared_name="shared_mlp",
        shared_size=shared,
    )
    layer = pre_norm("mixture layer", mixer, experts, c.size("hidden_size"))
    return stack(c, "hunyuan", [0] * num_layers(c), lambda _: layer)


def _one(c: Config, field: str, default: Any = None) -> int:
    """A number that the config states once, or once per layer with equal values."""
    value = c.raw(field)
    if not isinstance(value, list | tuple):
        return c.depth(field) if default is None else c.depth(field, default=default)
    if (
        not value
        or len(set(map(repr, value))) != 1
        or isinstance(value[0], bool)
        or not isinstance(value[0], int)
        or value[0] < 1
    ):
        raise InvalidInput(
            "{where}: {field} must be one positive whole number, the same for all layers. Got {given}.",
            where=c.where,
            field=field,
            given=shown(value),
        )
    return value[0]


@architecture("HYV3ForCausalLM", model_types=("hy_v3",))
def hy3(c: Config) -> Model:
    def layer(kind: str) -> Block:
        mixer = attention(c, bias=c.flag("attention_bias", default=False), qk_norm="head")
        feed = mlp(c, bias=c.flag("mlp_bias", default=False)) if kind == "dense" else _hy3_mixture(c)
        return pre_norm(Message("{kind} layer", kind=kind), mixer, feed, c.size("hidden_size"))

    first = c.depth("first_k_dense_replace", default=1, smallest=0)
    kinds = layer_kinds(c, lambda i: "sparse" if i >= first else "dense", ("dense", "sparse"), "mlp_layer_types")
    return stack(c, "hunyuan", kinds, layer, drafts=draft_layers(c, layer("sparse"), table=False, head=False))


def _hy3_mixture(c: Config) -> MoE:
    width = c.size("moe_intermediate_size", "expert_hidden_dim")
    shared = c.depth("num_shared_experts", default=1, smallest=0)
    return moe(
        c,
        intermediate_size=width,
        shared_size=width * shared,
        shared_bias=c.flag("mlp_bias", default=False),
        correction_bias=True,
        correction_name="e_score_correction_bias",
    )
