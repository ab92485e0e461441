"""MoonViT of Kimi-VL, and its forms over time of Kimi K2.5 and Kimi K3.

Structure: transformers 5.23, models/kimi_k25; vllm-project/vllm vllm/model_executor/models/moonvit.py (Kimi-VL). Kimi
K3's (no biases, RMSNorm, attention wider than the layer, projector with its norm behind) is that of ROCm/ATOM
atom/models/kimi_k3_vl.py; its time axis, as Kimi K2.5's, is not learned.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch
from tonnage.architectures._parts import NormKind, norm
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import bidirectional, patch_area, patches, plain_mlp, stack, table, vision_layer
from tonnage.kernel.errors import InvalidInput

DEFAULTS = {
    "attn_bias": True,
    "linear_bias": True,
    "patch_embed_proj_bias": True,
    "norm_type": "layernorm",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "init_pos_emb_height": 64,
    "init_pos_emb_width": 64,
}
NORMS: dict[str, NormKind] = {"layernorm": "layer", "rmsnorm": "rms"}


@tower("moonvit", "kimi_k25_vision")
def moonvit(c: Config) -> Branch:
    """Fields as Kimi-VL names them, with the prefix `vt_` as Kimi K2.5 and K3 do, or as transformers does."""
    c = c.with_defaults(DEFAULTS)
    width, heads = c.size("vt_hidden_size", "hidden_size"), c.size("vt_num_attention_heads", "num_attention_heads")
    inner = c.size("qkv_hidden_size", default=width)
    if inner % heads:
        raise InvalidInput(
            "{where}: vt_num_attention_heads ({heads}) must divide the width of the attention ({inner}).",
            where=c.where,
            heads=heads,
            inner=inner,
        )
    mixer = bidirectional(
        c,
        name="attn",
        hidden_size=width,
        heads=heads,
        head_dim=inner // heads,
        fused="wqkv",
        names=("q", "k", "v", "wo"),
        bias=c.flag("attn_bias"),
    )
    feed = plain_mlp(
        width, c.size("vt_intermediate_size", "intermediate_size"), names=("", "fc0", "fc1"), bias=c.flag("linear_bias")
    )
    kind = NORMS[c.one_of("norm_type", tuple(NORMS))]
    positions = c.size("pos_emb_height", "init_pos_emb_height") * c.size("pos_emb_width", "init_pos_emb_width")
    before = (
        patches(c, "patch_embed.proj", patch_area(c), width, bias=c.flag("patch_embed_proj_bias")),
        table("patch_embed.pos_emb.weight", positions, width),
    )
    layers = [0] * c.depth("vt_num_hidden_layers", "num_hidden_layers")
    after = (norm("encoder.final_layernorm", width, kind),)
    return stack(
        "moonvit vision tower",
        width,
        [vision_layer(width, mixer, feed, ("norm0", "norm1"), kind)],
        layers,
        before,
        after,
    )
