"""Gemma 4, its language model alone: wider heads in the full layers, which may use their keys as values; dense or
mixtures.

Structure: transformers 5.23, models/gemma4/modeling_gemma4.py and configuration_gemma4.py. Full layers have heads of
global_head_dim and, with attention_k_eq_v, num_global_key_value_heads of them and no v_proj; keys and values are still
cached apart, since only keys are rotated. A mixture runs beside the dense feed-forward of every layer. Layers may
carry embeddings of their own and may read an earlier layer's cache, as in Gemma 3n, then with twice the feed-forward
width (use_double_wide_mlp). layer_scalar is a stored buffer of one number.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import every_nth_full, layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, kv_heads, mlp, norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.gemma3n import per_layer_gate, per_layer_inputs, sandwich_norms, shared_layers
from tonnage.kernel.message import Message
from tonnage.ops import Attention, Op, Parameter

DEFAULTS = {
    "vocab_size": 262_144,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "global_head_dim": 512,
    "max_position_embeddings": 131_072,
    "sliding_window": 512,
    "vocab_size_per_layer_input": 262_144,
    "hidden_size_per_layer_input": 256,
    "num_kv_shared_layers": 0,
}


@architecture("Gemma4ForCausalLM", model_types=("gemma4_text",))
def gemma4(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    kinds = layer_kinds(c, every_nth_full(6))
    kinds[-1] = "full_attention"  # the class forces it, whatever the list says
    pairs = list(zip(kinds, shared_layers(c), strict=True))
    return stack(c, "gemma4", pairs, lambda pair: _layer(c, *pair), tied=True, before=per_layer_inputs(c))


def _layer(c: Config, kind: str, shared: bool) -> Block:
    wide = 2 if shared and c.flag("use_double_wide_mlp", default=False) else 1
    feed = mlp(c, intermediate_size=wide * c.size("intermediate_size"))
    first, second, third, fourth = sandwich_norms(c)
    ops = (first, _attention(c, kind, shared), second, third, feed, *_mixture(c), fourth, *per_layer_gate(c))
    name = (
        Message("{kind} layer that reads another's cache", kind=kind) if shared else Message("{kind} layer", kind=kind)
    )
    return Block(name, (*ops, Parameter(name="layer_scalar", elements=1)))


def _attention(c: Config, kind: str, shared: bool) -> Attention:
    options = {"bias": c.flag("attention_bias", default=False), "qk_norm": "head", "window": window_of(c, kind)}
    if kind == "full_attention":
        same = c.flag("attention_k_eq_v", default=False)
        options |= {"head_dim": c.size("global_head_dim"), "key_is_value": same}
        if same:
            heads = c.size("num_attention_heads")
            options["kv_heads"] = c.size("num_global_key_value_heads", default=None) or kv_heads(c, heads)
    return attention(c, has_kv=not shared, shares_cache=shared, **options)


def _mixture(c: Config) -> tuple[Op, ...]:
    """Router and experts in parallel with the dense feed-forward, with norms around both."""
    if not c.flag("enable_moe_block", default=False):
        return ()
    h, experts = c.size("hidden_size"), c.depth("num_experts")
    return (
        norm("post_feedforward_layernorm_1", h),
        norm("pre_feedforward_layernorm_2", h),
        Parameter(name="router.scale", elements=h, part="router"),
        Parameter(name="router.per_expert_scale", elements=experts, part="router"),
        moe(
            c,
            name="",
            top_k=c.depth("top_k_experts"),
            router_name="router.proj",
            expert_names=("gate_up_proj", "gate_up_proj", "down_proj"),
        ),
        norm("post_feedforward_layernorm_2", h),
    )
