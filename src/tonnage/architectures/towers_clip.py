"""CLIP's and SigLIP's vision transformers, with their copies in Idefics, SmolVLM and Phi-4.

Sources: transformers 5.23, models/{clip,siglip,siglip2,idefics2,idefics3,smolvlm,phi4_multimodal}.
"""

from collections.abc import Sequence

from tonnage.architectures._classic import head_width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch
from tonnage.architectures._parts import norm, num_layers
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import (
    OUT_PROJ,
    bidirectional,
    grid,
    patch_area,
    patches,
    plain_mlp,
    stack,
    table,
    vision_layer,
)
from tonnage.ops import Attention, Op, Parameter

BASE = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
}
CLIP = {**BASE, "patch_size": 32}
SIGLIP = {**BASE, "patch_size": 16, "vision_use_head": True}
SIGLIP2 = {**SIGLIP, "num_patches": 256}
IDEFICS2 = {**BASE, "patch_size": 32, "vision_use_head": False}
IDEFICS3 = {**IDEFICS2, "hidden_size": 1152, "num_attention_heads": 16}
PHI4 = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "image_size": 448,
    "patch_size": 14,
    "vision_use_head": True,
}


@tower("clip_vision_model")
def clip(c: Config) -> Branch:
    c = c.with_defaults(CLIP)
    width = c.size("hidden_size")
    before = (
        Parameter(name="class_embedding", elements=width, part="vision"),
        patches(c, "patch_embedding", patch_area(c), width, bias=False),
        table("position_embedding.weight", grid(c) + 1, width),
        norm("pre_layrnorm", width, "layer"),
    )
    return encoder(c, "clip vision tower", before, (norm("post_layernorm", width, "layer"),))


@tower("siglip_vision_model")
def siglip(c: Config) -> Branch:
    c = c.with_defaults(SIGLIP)
    return siglip_tower(c, grid(c))


@tower("siglip2_vision_model")
def siglip2(c: Config) -> Branch:
    """The patch embedding is a matrix of the same size, and the position table is resized for every image."""
    c = c.with_defaults(SIGLIP2)
    return siglip_tower(c, c.size("num_patches"))


@tower("idefics2", "idefics2_vision")
def idefics2(c: Config) -> Branch:
    c = c.with_defaults(IDEFICS2)
    return siglip_tower(c, grid(c))


@tower("idefics3", "idefics3_vision", "smolvlm", "smolvlm_vision")
def idefics3(c: Config) -> Branch:
    c = c.with_defaults(IDEFICS3)
    return siglip_tower(c, grid(c))


@tower("phi4_multimodal_vision")
def phi4(c: Config) -> Branch:
    c = c.with_defaults(PHI4)
    return siglip_tower(c, grid(c))


def siglip_tower(c: Config, positions: int) -> Branch:
    width = c.size("hidden_size")
    before = (patches(c, "patch_embedding", patch_area(c), width), table("position_embedding.weight", positions, width))
    after: tuple[Op, ...] = (norm("post_layernorm", width, "layer"),)
    if c.flag("vision_use_head", default=True):
        after += pooling_head(c)
    return encoder(c, "siglip vision tower", before, after)


def pooling_head(c: Config) -> tuple[Op, ...]:
    """The pooling head: one learned query attends to all patches. The projector reads the patches before it, yet its
    weights are stored.
    """
    width, heads = c.size("hidden_size"), c.size("num_attention_heads")
    return (
        Parameter(name="head.probe", elements=width, part="vision"),
        Attention(
            name="head.attention",
            hidden_size=width,
            heads=heads,
            kv_heads=heads,
            head_dim=head_width(c, width, heads),
            bias=True,
            causal=False,
            fused="in_proj",
            names=OUT_PROJ,
        ),
        norm("head.layernorm", width, "layer"),
        plain_mlp(width, c.size("intermediate_size"), name="head.mlp"),
    )


def encoder(c: Config, name: str, before: Sequence[Op], after: Sequence[Op]) -> Branch:
    width = c.size("hidden_size")
    layer = vision_layer(width, bidirectional(c, names=OUT_PROJ), plain_mlp(width, c.size("intermediate_size")))
    return stack(name, width, [layer], [0] * num_layers(c), before, after)
