"""Pixtral's vision transformer: rotary positions, RMSNorm, gated feed-forward, no biases.

Structure: transformers 5.23, models/pixtral.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch
from tonnage.architectures._parts import mlp, norm, num_layers
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import bidirectional, patch_area, patches, stack, vision_layer

PIXTRAL = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "patch_size": 16,
}


@tower("pixtral")
def pixtral(c: Config) -> Branch:
    c = c.with_defaults(PIXTRAL)
    width = c.size("hidden_size")
    mixer = bidirectional(c, name="attention", bias=False)
    layer = vision_layer(width, mixer, mlp(c, name="feed_forward"), ("attention_norm", "ffn_norm"), "rms")
    before = (patches(c, "patch_conv", patch_area(c), width, bias=False), norm("ln_pre", width))
    return stack("pixtral vision tower", width, [layer], [0] * num_layers(c), before)
