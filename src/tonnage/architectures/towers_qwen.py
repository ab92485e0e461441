"""The vision transformers of Qwen2-VL to Qwen3.5 and the Omni models: patches of two frames, merged four to one.

Sources: transformers 5.23,
models/{qwen2_vl,qwen2_5_vl,qwen3_vl,qwen3_vl_moe,qwen3_5,qwen2_5_omni,qwen3_omni_moe,exaone4_5}.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import (
    bidirectional,
    linear,
    patch_area,
    patches,
    plain_mlp,
    stack,
    table,
    vision_layer,
    whole_numbers,
)
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention, Op

SHARED = {"in_channels": 3, "spatial_merge_size": 2, "temporal_patch_size": 2, "num_heads": 16}
QWEN2 = {**SHARED, "depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "patch_size": 14}
QWEN2_5 = {
    **SHARED, "depth": 32, "hidden_size": 3584, "intermediate_size": 3420, "patch_size": 14, "window_size": 112,
    "out_hidden_size": 3584, "fullatt_block_indexes": [7, 15, 23, 31],
}  # fmt: skip
QWEN3_5 = {
    **SHARED,
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "patch_size": 16,
    "out_hidden_size": 3584,
    "num_position_embeddings": 2304,
}
QWEN3 = {**QWEN3_5, "deepstack_visual_indexes": [8, 16, 24]}
NAME = "qwen vision tower"
FC = ("", "linear_fc1", "linear_fc2")
NORMS = ("norm1", "norm2")


@tower("qwen2_vl", "qwen2_vl_vision")
def qwen2_vl(c: Config) -> Branch:
    c = c.with_defaults(QWEN2)
    width = c.size("embed_dim")
    heads = c.size("num_heads")
    mixer = patch_attention(c, width, heads)
    layer = vision_layer(width, mixer, plain_mlp(width, width * c.size("mlp_ratio")), NORMS)
    after = (
        norm("merger.ln_q", width, "layer"),
        *merger(c, "merger.mlp.0", "merger.mlp.2", width, c.size("hidden_size")),
    )
    return stack(NAME, width, [layer], [0] * c.depth("depth"), [first(c, width, bias=False)], after)


@tower("qwen2_5_vl", "qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder")
def qwen2_5_vl(c: Config) -> Branch:
    """Qwen2.5-VL's tower: all but four layers see windows of 112 x 112 pixels."""
    return windowed_tower(c.with_defaults(QWEN2_5), None)


@tower("exaone4_5_vision")
def exaone4_5(c: Config) -> Branch:
    """EXAONE 4.5's tower: Qwen2.5-VL's with grouped keys and values."""
    c = c.with_defaults({**QWEN2_5, "num_key_value_heads": 8})
    return windowed_tower(c, c.size("num_key_value_heads"))


def windowed_tower(c: Config, groups: int | None) -> Branch:
    width = c.size("hidden_size")
    window = max(c.size("window_size") // c.size("patch_size"), 1) ** 2
    full = set(whole_numbers(c, "fullatt_block_indexes", smallest=0))
    blocks = [gated_layer(c, width, None, groups), gated_layer(c, width, window, groups)]
    layers = [0 if i in full else 1 for i in range(c.depth("depth"))]
    after = (norm("merger.ln_q", width), *merger(c, "merger.mlp.0", "merger.mlp.2", width, c.size("out_hidden_size")))
    return stack(NAME, width, blocks, layers, [first(c, width, bias=False)], after)


@tower("qwen3_vl", "qwen3_vl_vision", "qwen3_vl_moe", "qwen3_vl_moe_vision", "qwen3_omni_moe_vision_encoder")
def qwen3_vl(c: Config) -> Branch:
    """Deepstack: features of some layers are merged by mergers of their own and added to the first text layers."""
    c = c.with_defaults(QWEN3)
    return qwen3_tower(c, len(c.layers("deepstack_visual_indexes")))


@tower("qwen3_5", "qwen3_5_vision", "qwen3_5_moe", "qwen3_5_moe_vision")
def qwen3_5(c: Config) -> Branch:
    return qwen3_tower(c.with_defaults(QWEN3_5), 0)


def qwen3_tower(c: Config, deepstack: int) -> Branch:
    width = c.size("hidden_size")
    mixer = patch_attention(c, width, c.size("num_heads"))
    layer = vision_layer(width, mixer, plain_mlp(width, c.size("intermediate_size"), names=FC), NORMS)
    before = (first(c, width, bias=True), table("pos_embed.weight", c.size("num_position_embeddings"), width))
    outputs = c.size("out_hidden_size")
    after: tuple[Op, ...] = (norm("merger.norm", width, "layer"),)
    after += merger(c, "merger.linear_fc1", "merger.linear_fc2", width, outputs)
    for i in range(deepstack):
        name = f"deepstack_merger_list.{i}"
        after += (norm(f"{name}.norm", width * merged(c), "layer"),)
        after += merger(c, f"{name}.linear_fc1", f"{name}.linear_fc2", width, outputs)
    return stack(NAME, width, [layer], [0] * c.depth("depth"), before, after)


def gated_layer(c: Config, width: int, window: int | None, groups: int | None) -> Block:
    mixer = patch_attention(c, width, c.size("num_heads"), window, groups)
    feed = MLP(hidden_size=width, intermediate_size=c.size("intermediate_size"), bias=True)
    return vision_layer(
        width, mixer, feed, NORMS, "rms", name="vision layer" if window is None else "windowed vision layer"
    )


def patch_attention(
    c: Config, width: int, heads: int, window: int | None = None, groups: int | None = None
) -> Attention:
    if width % heads:
        raise InvalidInput(
            "{where}: num_heads ({heads}) must divide the width of the tower ({width}).",
            where=c.where,
            heads=heads,
            width=width,
        )
    return bidirectional(
        c,
        name="attn",
        hidden_size=width,
        heads=heads,
        kv_heads=groups or heads,
        head_dim=width // heads,
        fused="qkv",
        window=window,
        names=("q", "k", "v", "proj"),
    )


def first(c: Config, width: int, bias: bool) -> Op:
    return patches(c, "patch_embed.proj", c.size("temporal_patch_size") * patch_area(c), width, bias)


def merged(c: Config) -> int:
    """Number of patches that are merged into one token."""
    return c.size("spatial_merge_size") ** 2


def merger(c: Config, one: str, two: str, width: int, outputs: int) -> tuple[Op, ...]:
    inner = width * merged(c)
    return linear(one, inner, inner), linear(two, inner, outputs)
