"""GLM-4.1V's, GLM-4.5V's and GLM-4.6V's vision transformer (transformers 5.23, models/{glm4v,glm4v_moe,glm46v})."""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import bidirectional, grid, linear, patch_area, patches, stack, table, vision_layer
from tonnage.ops import MLP, Convolution

GLM4V = {
    "depth": 24,
    "hidden_size": 1536,
    "num_heads": 12,
    "in_channels": 3,
    "image_size": 336,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 4096,
    "intermediate_size": 13696,
    "attention_bias": False,
}


@tower("glm4v", "glm4v_vision", "glm4v_moe", "glm4v_moe_vision")
def glm4v(c: Config) -> Branch:
    """The layers' feed-forward is as wide as the text model; intermediate_size is that of the merger behind them."""
    c = c.with_defaults(GLM4V)
    width, text = c.size("hidden_size"), c.size("out_hidden_size")
    mixer = bidirectional(
        c, name="attn", bias=c.flag("attention_bias"), out_bias=False, fused="qkv", names=("q", "k", "v", "proj")
    )
    layer = vision_layer(width, mixer, MLP(hidden_size=width, intermediate_size=text), ("norm1", "norm2"), "rms")
    before = (
        patches(c, "patch_embed.proj", c.size("temporal_patch_size") * patch_area(c), width),
        table("embeddings.position_embedding.weight", grid(c), width),
        norm("post_conv_layernorm", width),
    )
    after = (
        norm("post_layernorm", width),
        Convolution(
            name="downsample",
            in_channels=width,
            out_channels=text,
            kernel=c.size("spatial_merge_size") ** 2,
            bias=True,
            part="vision",
        ),
        linear("merger.proj", text, text, bias=False),
        norm("merger.post_projection_norm", text, "layer"),
        MLP(name="merger", hidden_size=text, intermediate_size=c.size("intermediate_size")),
    )
    return stack("glm vision tower", width, [layer], [0] * c.depth("depth"), before, after)
