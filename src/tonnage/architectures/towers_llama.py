"""The vision transformers of Llama 3.2 Vision (mllama) and Llama 4 (transformers 5.23, models/{mllama,llama4})."""

from tonnage.architectures._classic import head_width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch
from tonnage.architectures._parts import norm, num_layers
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import (
    bidirectional,
    grid,
    linear,
    patch_area,
    patches,
    plain_mlp,
    stack,
    table,
    vision_layer,
)
from tonnage.ops import Op, Parameter

MLLAMA = {
    "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_global_layers": 8,
    "attention_heads": 16,
    "image_size": 448, "patch_size": 14, "max_num_tiles": 4, "vision_output_dim": 7680,
    "supported_aspect_ratios": [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]],
}  # fmt: skip
LLAMA4 = {
    "hidden_size": 768,
    "intermediate_size": 5632,
    "num_hidden_layers": 34,
    "num_attention_heads": 16,
    "image_size": 448,
    "patch_size": 14,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
    "vision_output_dim": 7680,
}
NORMS = ("input_layernorm", "post_attention_layernorm")


@tower("mllama_vision_model")
def mllama(c: Config) -> Branch:
    """Tiles share one position table, and each aspect ratio has one of its own; then a second, gated encoder."""
    c = c.with_defaults(MLLAMA)
    width = c.size("hidden_size")
    gates = tuple(Parameter(name=name, elements=1, part="vision") for name in ("gate_attn", "gate_ffn"))
    blocks = [mllama_layer(c, "vision layer"), mllama_layer(c, "global vision layer", gates)]
    layers = [0] * num_layers(c) + [1] * c.depth("num_global_layers")
    after = (norm("layernorm_post", width, "layer"), *tiles(c, "post_tile_positional_embedding"))
    return stack("mllama vision tower", width, blocks, layers, mllama_input(c), after)


def mllama_input(c: Config) -> tuple[Op, ...]:
    width, positions = c.size("hidden_size"), grid(c) + 1
    ratios = len(c.items("supported_aspect_ratios")) + 1  # row 0 is padding
    return (
        patches(c, "patch_embedding", patch_area(c), width, bias=False),
        Parameter(name="class_embedding", elements=width, part="vision"),
        *tiles(c, "pre_tile_positional_embedding"),
        Parameter(name="gated_positional_embedding.gate", elements=1, part="vision"),
        table("gated_positional_embedding.embedding", positions, width),
        table("gated_positional_embedding.tile_embedding.weight", ratios, c.size("max_num_tiles") * positions * width),
        norm("layernorm_pre", width, "layer"),
    )


def tiles(c: Config, name: str) -> tuple[Op, ...]:
    """The table of a tile's position in its image: a row for every aspect ratio."""
    ratios = len(c.items("supported_aspect_ratios")) + 1
    rows = table(f"{name}.embedding.weight", ratios, c.size("max_num_tiles") * c.size("hidden_size"))
    return rows, Parameter(name=f"{name}.gate", elements=1, part="vision")


def mllama_layer(c: Config, name: str, gates: tuple[Op, ...] = ()) -> Block:
    width, heads = c.size("hidden_size"), c.size("attention_heads", "num_attention_heads")
    mixer = bidirectional(c, heads=heads, head_dim=head_width(c, width, heads), bias=False)
    return vision_layer(width, mixer, plain_mlp(width, c.size("intermediate_size")), NORMS, extra=gates, name=name)


@tower("llama4_vision_model")
def llama4(c: Config) -> Branch:
    c = c.with_defaults(LLAMA4)
    width, outputs = c.size("hidden_size"), c.size("projector_output_dim")
    layer = vision_layer(width, bidirectional(c), plain_mlp(width, c.size("intermediate_size")), NORMS)
    before = (
        patches(c, "patch_embedding.linear", patch_area(c), width, bias=False),
        Parameter(name="class_embedding", elements=width, part="vision"),
        table("positional_embedding_vlm", grid(c) + 1, width),
        norm("layernorm_pre", width, "layer"),
    )
    after = (
        norm("layernorm_post", width, "layer"),
        linear("vision_adapter.mlp.fc1", c.size("intermediate_size"), c.size("projector_input_dim"), bias=False),
        linear("vision_adapter.mlp.fc2", outputs, outputs, bias=False),
    )
    return stack("llama 4 vision tower", width, [layer], [0] * num_layers(c), before, after)
