"""InternViT of InternVL (transformers 5.23, models/internvl; the first releases name it intern_vit_6b)."""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch
from tonnage.architectures._parts import NormKind, norm, num_layers
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import (
    bidirectional,
    grid,
    patch_area,
    patches,
    plain_mlp,
    stack,
    table,
    vision_layer,
)
from tonnage.ops import Op, Parameter

INTERNVL: dict[str, object] = {
    "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
    "image_size": 448,
    "patch_size": 14, "attention_bias": False, "use_qk_norm": False, "norm_type": "layer_norm", "use_mask_token": False,
    "use_absolute_position_embeddings": True, "use_mean_pooling": True,
}  # fmt: skip
NORMS: dict[str, NormKind] = {"layer_norm": "layer", "rms_norm": "rms"}


@tower("internvl_vision")
def internvl(c: Config) -> Branch:
    c = c.with_defaults(INTERNVL)
    width = c.size("hidden_size")
    before: tuple[Op, ...] = (Parameter(name="cls_token", elements=width, part="vision"),)
    if c.flag("use_mask_token"):
        before += (Parameter(name="mask_token", elements=width, part="vision"),)
    before += (patches(c, "patch_embeddings.projection", patch_area(c), width),)
    if c.flag("use_absolute_position_embeddings"):
        before += (table("position_embeddings", grid(c) + 1, width),)
    after = () if c.flag("use_mean_pooling") else (norm("layernorm", width, "layer"),)
    return internvit(c, c.flag("attention_bias"), c.flag("use_qk_norm"), before, after)


@tower("intern_vit_6b")
def intern_vit(c: Config) -> Branch:
    """The names of the first releases: qkv_bias, qk_normalization."""
    c = c.with_defaults({"norm_type": "rms_norm", "qkv_bias": False, "qk_normalization": True})
    width = c.size("hidden_size")
    before = (
        Parameter(name="embeddings.class_embedding", elements=width, part="vision"),
        patches(c, "embeddings.patch_embedding", patch_area(c), width),
        table("embeddings.position_embedding", grid(c) + 1, width),
    )
    return internvit(c, c.flag("qkv_bias"), c.flag("qk_normalization"), before, ())


def internvit(c: Config, bias: bool, qk_norm: bool, before: tuple[Op, ...], after: tuple[Op, ...]) -> Branch:
    """InternViT's branch; a learned vector scales each residual branch."""
    width = c.size("hidden_size")
    mixer = bidirectional(
        c,
        name="attention",
        bias=bias,
        out_bias=True,
        qk_norm="full" if qk_norm else "",
        names=("q_proj", "k_proj", "v_proj", "projection_layer"),
    )
    scales = tuple(Parameter(name=name, elements=width, part="vision") for name in ("lambda_1", "lambda_2"))
    kind = NORMS[c.one_of("norm_type", tuple(NORMS))]
    layer = vision_layer(
        width,
        mixer,
        plain_mlp(width, c.size("intermediate_size")),
        ("layernorm_before", "layernorm_after"),
        kind,
        scales,
    )
    return stack("internvl vision tower", width, [layer], [0] * num_layers(c), before, after)
