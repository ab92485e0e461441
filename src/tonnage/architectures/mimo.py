"""MiMo-7B (Qwen2 with a draft layer) and MiMo-V2: full layers with few heads, sliding ones with more, values
narrower than keys.

Structure: MiMo-7B: XiaomiMiMo/MiMo-7B-Base modeling_mimo.py (MiMoMTPLayers). MiMo-V2-Flash: transformers 5.23,
models/mimo_v2_flash/modeling_mimo_v2_flash.py for the layers; where the config gives them, swa_* fields hold the
sliding layers' heads (the class takes twice num_key_value_heads), hybrid_layer_pattern and moe_layer_freq say 1 for
sliding and for a mixture, add_*_attention_sink_bias which layers have sinks. The checkpoint's draft layers, which
transformers ignores and the config does not count: sgl-project/sglang python/sglang/srt/models/mimo_v2_flash_nextn.py;
three of them in MiMo-V2-Flash (its model card, "3-layer MTP").
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import layer_kinds, moe, stack, window_of
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import attention, mlp, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.qwen2 import window_kinds
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import Attention, Linear

DRAFTS = 3


@architecture("MiMoForCausalLM", model_types=("mimo",))
def mimo(c: Config) -> Model:
    h, bias = c.size("hidden_size"), c.flag("attention_bias", default=True)

    def layer(kind: str) -> Block:
        mixer = attention(c, bias=bias, out_bias=False, window=window_of(c, kind))
        return pre_norm(Message("{kind} layer", kind=kind), mixer, mlp(c), h)

    return stack(c, "mimo", window_kinds(c), layer, drafts=_drafts(c, layer("full_attention")))


def _drafts(c: Config, layer: Block) -> list[Branch]:
    count, h = c.depth("num_nextn_predict_layers", default=0, smallest=0), c.size("hidden_size")
    if not count:
        return []
    joined = (
        norm("token_layernorm", h),
        norm("hidden_layernorm", h),
        Linear(name="input_proj", in_features=2 * h, out_features=h),
    )
    block = Block("multi-token prediction layer", (*joined, *layer.ops, norm("final_layernorm", h)))
    return [Branch(name="multi-token prediction", kind="draft", hidden_size=h, blocks=(block,), layers=(0,) * count)]


@architecture("MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM", model_types=("mimo_v2_flash", "mimo_v2"))
def mimo_v2(c: Config) -> Model:
    def layer(kind: tuple[str, str]) -> Block:
        feed = mlp(c) if kind[1] == "dense" else moe(c, correction_bias=True)
        return pre_norm(
            Message("{feed} {kind} layer", feed=kind[1], kind=kind[0]),
            _attention(c, kind[0]),
            feed,
            c.size("hidden_size"),
        )

    return stack(c, "mimo", list(zip(_mixer_kinds(c), _feed_kinds(c), strict=True)), layer, drafts=_v2_drafts(c))


def _attention(c: Config, kind: str) -> Attention:
    bias = {"bias": c.flag("attention_bias", default=False), "out_bias": False}
    heads, groups = c.size("num_attention_heads"), c.size("num_key_value_heads")
    width, value = c.size("head_dim"), c.size("v_head_dim")
    if kind == "full_attention":
        sinks = c.flag("add_full_attention_sink_bias", default=False)
        return attention(c, heads=heads, kv_heads=groups, head_dim=width, value_dim=value, sinks=sinks, **bias)
    return attention(
        c,
        heads=c.size("swa_num_attention_heads", default=heads),
        kv_heads=c.size("swa_num_key_value_heads", default=2 * groups),
        head_dim=c.size("swa_head_dim", default=width),
        value_dim=c.size("swa_v_head_dim", default=value),
        window=c.size("sliding_window", "sliding_window_size"),
        sinks=c.flag("add_swa_attention_sink_bias", default=True),
        **bias,
    )


def _mixer_kinds(c: Config) -> list[str]:
    pattern = _zeros_and_ones(c, "hybrid_layer_pattern")

    def usual(layer: int) -> str:
        slides = pattern[layer] if pattern is not None else layer and (layer + 1) % 6
        return "sliding_attention" if slides else "full_attention"

    return layer_kinds(c, usual)


def _feed_kinds(c: Config) -> list[str]:
    pattern = _zeros_and_ones(c, "moe_layer_freq")

    def usual(layer: int) -> str:
        sparse = pattern[layer] if pattern is not None else layer
        return "sparse" if sparse else "dense"

    return layer_kinds(c, usual, ("dense", "sparse"), "mlp_layer_types")


def _zeros_and_ones(c: Config, field: str) -> list[int] | None:
    numbers = c.items(field, default=None)
    if numbers is not None and (len(numbers) < num_layers(c) or any(item not in (0, 1) for item in numbers)):
        raise InvalidInput(
            "{where}: {field} must hold 0 or 1 for each of {num_layers} layers. Got {given}.",
            where=c.where,
            field=field,
            num_layers=num_layers(c),
            given=shown(numbers),
        )
    return numbers


def _v2_drafts(c: Config) -> list[Branch]:
    """Dense sliding layers that share the embedding and the head."""
    h, count = c.size("hidden_size"), c.depth("num_nextn_predict_layers", default=DRAFTS, smallest=0)
    ops = (
        norm("enorm", h),
        norm("hnorm", h),
        Linear(name="eh_proj", in_features=2 * h, out_features=h),
        norm("input_layernorm", h),
        _attention(c, "sliding_attention"),
        norm("pre_mlp_layernorm", h),
        mlp(c),
        norm("final_layernorm", h),
    )
    block = Block("multi-token prediction layer", ops)
    return (
        [Branch(name="multi-token prediction", kind="draft", hidden_size=h, blocks=(block,), layers=(0,) * count)]
        if count
        else []
    )
