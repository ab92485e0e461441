"""Step-3.5-Flash and the language model of Step-3.7-Flash: one full layer in four, sliding ones with more heads,
experts.

Structure: transformers 5.23, models/step3p7/modeling_step3p7.py and configuration_step3p7.py (attention_other_setting
holds the heads of sliding layers; moe_layers_enum the mixtures; per-layer lists go on with the draft layers); the
checkpoint's names (moe, share_expert, router_bias) from its conversion_mapping.py. The draft layers are dense and
slide; each has a head of its own (vllm-project/vllm vllm/model_executor/models/step3p5_mtp.py), and transformers
ignores them.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import attention, mlp, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.architectures.deepseek import draft_layers
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import Attention, Op

DEFAULTS = {"head_dim": 128, "share_expert_dim": 1280, "num_key_value_heads": 8}


@architecture("Step3p5ForCausalLM", "Step3p7FlashForCausalLM", model_types=("step3p5",))
def step3p5(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    sparse = _mixture_layers(c)
    feeds = ["sparse" if layer in sparse else "dense" for layer in range(num_layers(c))]
    kinds = layer_kinds(c, lambda _: "full_attention")
    guessed = "sliding_attention" in kinds and not (
        "attention_other_setting" in c or "num_sliding_attention_heads" in c
    )
    notes = (
        ("attention_other_setting is absent: sliding layers are taken with as many heads as full ones.",)
        if guessed
        else ()
    )
    return stack(
        c, "step", list(zip(kinds, feeds, strict=True)), lambda kind: _layer(c, *kind), drafts=_drafts(c), notes=notes
    )


def _layer(c: Config, kind: str, feed: str) -> Block:
    h = c.size("hidden_size")
    ops: tuple[Op, ...] = (norm("input_layernorm", h), _attention(c, kind), norm("post_attention_layernorm", h))
    return Block(Message("{feed} {kind} layer", feed=feed, kind=kind), (*ops, *_feed_forward(c, feed)))


def _attention(c: Config, kind: str) -> Attention:
    heads, other = c.size("num_attention_heads"), c.section("attention_other_setting", required=False)
    groups = c.size("num_attention_groups", "num_key_value_heads")
    if kind == "sliding_attention":
        if other is not None:
            heads, groups = (
                other.size("num_attention_heads", default=heads),
                other.size("num_attention_groups", default=groups),
            )
        heads = c.size("num_sliding_attention_heads", default=heads)
    if heads % groups:
        raise InvalidInput(
            "{where}: num_attention_groups ({groups}) must divide the heads of a {kind} layer ({heads}).",
            where=c.where,
            groups=groups,
            kind=kind,
            heads=heads,
        )
    return attention(
        c,
        heads=heads,
        kv_heads=groups,
        bias=c.flag("attention_bias", default=False),
        qk_norm="head",
        gate_name="g_proj",
        gate_width=heads,
        window=window_of(c, kind),
    )


def _feed_forward(c: Config, kind: str) -> tuple[Op, ...]:
    if kind == "dense":
        return (mlp(c),)
    experts = moe(
        c,
        name="moe",
        num_experts=c.depth("moe_num_experts", "n_routed_experts", "num_experts"),
        top_k=c.depth("moe_top_k", "num_experts_per_tok"),
        correction_bias=True,
        correction_name="router_bias",
    )
    return experts, mlp(c, name="share_expert", intermediate_size=c.size("share_expert_dim", "share_expert_dims"))


def _mixture_layers(c: Config) -> frozenset[int]:
    """mlp_layer_types, or moe_layers_enum ("3,4,5"), or every layer after the third."""
    count = num_layers(c)
    if c.raw("mlp_layer_types") is not None:
        kinds = layer_kinds(c, lambda _: "sparse", ("dense", "sparse"), "mlp_layer_types")
        return frozenset(layer for layer, kind in enumerate(kinds) if kind == "sparse")
    listed = c.raw("moe_layers_enum")
    if listed is None:
        return frozenset(range(c.depth("first_k_dense_replace", default=3, smallest=0), count))
    items = listed.split(",") if isinstance(listed, str) else listed
    try:
        return frozenset(int(item) for item in items if str(item).strip())
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            "{where}: moe_layers_enum must hold numbers of layers. Got {listed}.",
            where=c.where,
            listed=shown(listed),
        ) from None


def _drafts(c: Config) -> list[Branch]:
    kinds = c.items("layer_types", default=None) or []
    kind = kinds[num_layers(c)] if len(kinds) > num_layers(c) else "sliding_attention"
    return draft_layers(c, _layer(c, kind, "dense"), table=False)
