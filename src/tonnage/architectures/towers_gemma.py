"""The towers of Gemma 3n and Gemma 4: vision transformer, convolutional network, and two conformers for sound.

Sources: transformers 5.23, models/{gemma3n,gemma4}; timm 1.0.31, models/mobilenetv5.py (mobilenetv5_300m_enc).
"""

from typing import Any

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch
from tonnage.architectures._parts import mlp, norm, num_layers, sandwich
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import (
    bidirectional,
    linear,
    patch_area,
    patches,
    plain_mlp,
    stack,
    table,
    whole_numbers,
)
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import Attention, Convolution, Linear, Op, Parameter

VISION4 = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 16,
    "num_attention_heads": 12,
    "num_key_value_heads": 12,
    "head_dim": 64,
    "patch_size": 16,
    "position_embedding_size": 10240,
    "use_clipped_linears": False,
    "standardize": False,
}
AUDIO4 = {
    "hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 8, "subsampling_conv_channels": [128, 32],
    "conv_kernel_size": 5, "attention_chunk_size": 12, "attention_context_left": 13, "attention_context_right": 0,
    "use_clipped_linears": True, "output_proj_dims": 1536,
}  # fmt: skip
AUDIO3N = {
    "hidden_size": 1536, "conf_num_hidden_layers": 12, "conf_num_attention_heads": 8, "input_feat_size": 128,
    "sscp_conv_channel_size": [128, 32], "sscp_conv_kernel_size": [[3, 3], [3, 3]],
    "sscp_conv_stride_size": [[2, 2], [2, 2]],
    "conf_conv_kernel_size": 5, "conf_attention_chunk_size": 12, "conf_attention_context_left": 13,
    "conf_attention_context_right": 0,
}  # fmt: skip
MOBILENET = "mobilenetv5_300m_enc"


@tower("gemma4_vision")
def gemma4_vision(c: Config) -> Branch:
    """Sandwich norms, positions from a table for each axis; clipped linears keep four bounds each in the checkpoint."""
    c = c.with_defaults(VISION4)
    width, clipped = c.size("hidden_size"), c.flag("use_clipped_linears")
    mixer = bidirectional(c, kv_heads=c.size("num_key_value_heads"), bias=False, qk_norm="head")
    layer = sandwich("vision layer", mixer, mlp(c), width)
    layer = Block(layer.name, layer.ops + bounds(7 if clipped else 0))
    before = (
        patches(c, "patch_embedder.input_proj", patch_area(c), width, bias=False),
        table("patch_embedder.position_embedding_table", 2 * c.size("position_embedding_size"), width),
    )
    after = (table("std_bias and std_scale", 2, width),) if c.flag("standardize") else ()
    return stack("gemma 4 vision tower", width, [layer], [0] * num_layers(c), before, after)


def bounds(linears: int) -> tuple[Op, ...]:
    """input_min, input_max, output_min and output_max of each clipped linear."""
    return (Parameter(name="bounds of clipped linears", elements=4 * linears),) if linears else ()


@tower("gemma4_audio")
def gemma4_audio(c: Config) -> Branch:
    c = c.with_defaults(AUDIO4)
    width = c.size("hidden_size")
    channels = whole_numbers(c, "subsampling_conv_channels", 2)
    names = {
        "first": "feed_forward1",
        "last": "feed_forward2",
        "attention": "self_attn",
        "post": "post",
        "before": "norm_pre_attn",
        "positions": "self_attn.relative_k_proj",
        "behind": "norm_post_attn",
        "out": "norm_out",
    }
    layer = conformer(c, width, c.size("num_attention_heads"), c.size("conv_kernel_size"), visible(c, ""), names)
    clipped = bounds(10 if c.flag("use_clipped_linears") else 0)
    before = subsampling(channels, [9, 9], channels[0] // 4 * channels[1], width)
    after = (linear("output_proj", width, c.size("output_proj_dims")),)
    layer = Block(layer.name, layer.ops + clipped)
    return stack("gemma 4 audio tower", width, [layer], [0] * num_layers(c), before, after, kind="audio")


@tower("gemma3n_audio")
def gemma3n_audio(c: Config) -> Branch:
    c = c.with_defaults(AUDIO3N)
    width = c.size("hidden_size")
    channels, kernels = whole_numbers(c, "sscp_conv_channel_size", 2), pairs(c, "sscp_conv_kernel_size")
    frequencies = c.size("input_feat_size")
    for (_, wide), (_, step) in zip(kernels, pairs(c, "sscp_conv_stride_size"), strict=True):
        frequencies = max((frequencies + 2 - wide) // step + 1, 1)
    names = {
        "first": "ffw_layer_start",
        "last": "ffw_layer_end",
        "attention": "attention.attn",
        "post": "post",
        "positions": "attention.attn.relative_position_embedding.pos_proj",
        "before": "attention.pre_attn_norm",
        "behind": "attention.post_norm",
        "out": "norm",
    }
    layer = conformer(
        c, width, c.size("conf_num_attention_heads"), c.size("conf_conv_kernel_size"), visible(c, "conf_"), names
    )
    before = subsampling(channels, [high * wide for high, wide in kernels], frequencies * channels[1], width)
    layers = [0] * c.depth("conf_num_hidden_layers")
    return stack("gemma 3n audio tower", width, [layer], layers, before, kind="audio")


def visible(c: Config, prefix: str) -> int:
    """Frames that a frame's chunk computes attention over: itself, and what is left and right of it."""
    left, right = c.size(f"{prefix}attention_context_left"), c.size(f"{prefix}attention_context_right", smallest=0)
    return c.size(f"{prefix}attention_chunk_size") + left - 1 + right


def pairs(c: Config, name: str) -> list[tuple[int, int]]:
    """Two pairs of whole numbers: time and frequency of each of two convolutions."""
    items = c.items(name)
    right = [item for item in items if isinstance(item, list | tuple) and len(item) == 2]
    if len(items) != 2 or len(right) != 2 or not all(type(side) is int and side > 0 for item in right for side in item):
        raise InvalidInput(
            "{where}: {name} must hold two pairs of positive whole numbers. Got {given}.",
            where=c.where,
            name=name,
            given=shown(items),
        )
    return [(high, wide) for high, wide in right]


def subsampling(channels: list[int], taps: list[int], inputs: int, width: int) -> tuple[Op, ...]:
    """Two strided convolutions over time and frequency, each with a norm, and a matrix to the width of the layers."""
    name = "subsample_conv_projection"
    return (
        Convolution(name=f"{name}.0.conv", in_channels=1, out_channels=channels[0], kernel=taps[0], part="vision"),
        norm(f"{name}.0.norm", channels[0]),
        Convolution(
            name=f"{name}.1.conv", in_channels=channels[0], out_channels=channels[1], kernel=taps[1], part="vision"
        ),
        norm(f"{name}.1.norm", channels[1]),
        linear(f"{name}.input_proj_linear", inputs, width, bias=False),
    )


def conformer(c: Config, width: int, heads: int, kernel: int, window: int, names: dict[str, str]) -> Block:
    """Half a feed-forward, local attention with relative positions, a light convolution, and the other half."""
    if width % heads:
        raise InvalidInput(
            "{where}: the number of attention heads ({heads}) must divide {@hidden_size} ({width}).",
            where=c.where,
            heads=heads,
            width=width,
        )
    mixer = bidirectional(
        c,
        name=names["attention"],
        hidden_size=width,
        heads=heads,
        head_dim=width // heads,
        bias=False,
        window=window,
        names=("q_proj", "k_proj", "v_proj", names["post"]),
    )
    return Block(
        "conformer layer",
        (
            *half_step(names["first"], width),
            norm(names["before"], width),
            mixer,
            Parameter(name=f"{names['attention']}.per_dim_scale", elements=width // heads, part="vision"),
            Linear(name=names["positions"], in_features=width, out_features=width, part="vision"),
            norm(names["behind"], width),
            *light_convolution(width, kernel),
            *half_step(names["last"], width),
            norm(names["out"], width),
        ),
    )


def half_step(name: str, width: int) -> tuple[Op, ...]:
    feed = plain_mlp(width, 4 * width, name=name, bias=False, names=("", "ffw_layer_1", "ffw_layer_2"))
    return norm(f"{name}.pre_layer_norm", width), feed, norm(f"{name}.post_layer_norm", width)


def light_convolution(width: int, kernel: int) -> tuple[Op, ...]:
    return (
        norm("lconv1d.pre_layer_norm", width),
        linear("lconv1d.linear_start", width, 2 * width, bias=False),
        Convolution(name="lconv1d.depthwise_conv1d", in_channels=1, out_channels=width, kernel=kernel, part="vision"),
        norm("lconv1d.conv_norm", width),
        linear("lconv1d.linear_end", width, width, bias=False),
    )


@tower("gemma3n_vision")
def gemma3n_vision(c: Config) -> Branch:
    """MobileNetV5: four stages of convolutional blocks, the last two with multi-query attention between them.

    The config names the network and states no size: it is one fixed network of timm's, with 294 126 912 parameters.
    """
    c = c.with_defaults({"architecture": MOBILENET, "hidden_size": 2048})
    c.one_of("architecture", (MOBILENET,))
    stem = (convolution("conv_stem.conv", 3, 64, 9, bias=True), norm("conv_stem.bn", 64))
    fusion = expansion("msfa.ffn", 640 + 1280, 2048, 3840)
    after = (*fusion, norm("msfa.norm", 2048))
    blocks, layers = mobile_blocks()
    return stack("mobilenet vision tower", c.size("hidden_size"), blocks, layers, stem, after)


def mobile_blocks() -> tuple[list[Block], list[int]]:
    """The kinds of blocks, and the kind of each block in turn."""
    kinds = [edge(64, 128, 4), edge(128, 128, 4)]
    kinds += [inverted(128, 256, 6, 3, 5), inverted(256, 256, 4, 5), inverted(256, 256, 4, 3)]
    kinds += [
        inverted(256, 640, 6, 5, 5),
        inverted(640, 640, 4, 5),
        inverted(640, 640, 1),
        multi_query(640, 12, 64, True),
        inverted(640, 640, 2),
    ]
    kinds += [inverted(640, 1280, 6, 5, 5), multi_query(1280, 16, 96, False), inverted(1280, 1280, 2)]
    order = [0, 1, 1] + [2, 3, 4, 3, 4] + [5] + [6] * 7 + [7] + [8, 9] * 14 + [10] + [11, 12] * 19
    return kinds, order


def convolution(name: str, inputs: int, outputs: int, taps: int, **options: Any) -> Convolution:
    return Convolution(name=name, in_channels=inputs, out_channels=outputs, kernel=taps, part="vision", **options)


def edge(inputs: int, outputs: int, ratio: int) -> Block:
    """A fused inverted bottleneck: one full 3 x 3 convolution out, one point-wise back."""
    inner = inputs * ratio
    ops = (
        convolution("conv_exp", inputs, inner, 9),
        norm("bn1", inner),
        convolution("conv_pwl", inner, outputs, 1),
        norm("bn2", outputs),
    )
    return Block(Message("fused bottleneck {inputs}-{outputs}", inputs=inputs, outputs=outputs), ops)


def inverted(inputs: int, outputs: int, ratio: int, start: int = 0, middle: int = 0) -> Block:
    """An inverted bottleneck; `start` and `middle`: sides of its depth-wise kernels, 0 for none."""
    inner = inputs * ratio
    ops: tuple[Op, ...] = depthwise("dw_start", inputs, start) + expansion(
        "", inputs, outputs, inner, depthwise("dw_mid", inner, middle)
    )
    scale = Parameter(name="layer_scale.gamma", elements=outputs, part="vision")
    return Block(
        Message("inverted bottleneck {inputs}-{inner}-{outputs}", inputs=inputs, inner=inner, outputs=outputs),
        (*ops, scale),
    )


def depthwise(name: str, width: int, side: int) -> tuple[Op, ...]:
    return (convolution(f"{name}.conv", 1, width, side * side), norm(f"{name}.bn", width)) if side else ()


def expansion(name: str, inputs: int, outputs: int, inner: int, between: tuple[Op, ...] = ()) -> tuple[Op, ...]:
    prefix = f"{name}." if name else ""
    out = (convolution(f"{prefix}pw_exp.conv", inputs, inner, 1), norm(f"{prefix}pw_exp.bn", inner))
    back = (convolution(f"{prefix}pw_proj.conv", inner, outputs, 1), norm(f"{prefix}pw_proj.bn", outputs))
    return out + between + back


def multi_query(width: int, heads: int, head_dim: int, shrunk: bool) -> Block:
    """Attention over the feature map with one key-value head; `shrunk`: keys and values of every second point."""
    mixer = Attention(
        name="attn",
        hidden_size=width,
        heads=heads,
        kv_heads=1,
        head_dim=head_dim,
        causal=False,
        names=("query.proj", "key.proj", "value.proj", "output.proj"),
    )
    down: tuple[Op, ...] = ()
    if shrunk:
        for name in ("key", "value"):
            down += (convolution(f"attn.{name}.down_conv", 1, width, 9), norm(f"attn.{name}.norm", width))
    scale = Parameter(name="layer_scale.gamma", elements=width, part="vision")
    return Block(Message("multi-query attention {width}", width=width), (norm("norm", width), *down, mixer, scale))
