"""Whisper's audio encoder and its descendants in Qwen2-Audio, Qwen2.5-Omni, Qwen3-Omni and Voxtral.

Sources: transformers 5.23, models/{whisper,qwen2_audio,qwen2_5_omni,qwen3_omni_moe,voxtral}.
"""

from typing import Any

from tonnage.architectures._classic import head_width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import OUT_PROJ, linear, plain_mlp, stack, table
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention, Convolution, Op, Parameter

WHISPER = {
    "num_mel_bins": 80,
    "d_model": 384,
    "encoder_layers": 4,
    "encoder_attention_heads": 6,
    "encoder_ffn_dim": 1536,
    "max_source_positions": 1500,
}
LARGE = {
    "num_mel_bins": 128,
    "d_model": 1280,
    "encoder_layers": 32,
    "encoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "max_source_positions": 1500,
}
VOXTRAL = {
    "num_mel_bins": 128,
    "hidden_size": 1280,
    "num_hidden_layers": 32,
    "num_attention_heads": 20,
    "intermediate_size": 5120,
    "max_source_positions": 1500,
}
OMNI2_5 = {**LARGE, "output_dim": 3584}
OMNI3 = {**OMNI2_5, "downsample_hidden_size": 480}


@tower("whisper")
def whisper(c: Config) -> Branch:
    return with_positions(c.with_defaults(WHISPER))


@tower("qwen2_audio_encoder")
def qwen2_audio(c: Config) -> Branch:
    return with_positions(c.with_defaults(LARGE))


@tower("voxtral_encoder")
def voxtral(c: Config) -> Branch:
    return with_positions(c.with_defaults(VOXTRAL))


@tower("qwen2_5_omni_audio_encoder")
def qwen2_5_omni(c: Config) -> Branch:
    """Positions are computed; two learned vectors mark where a sound begins and ends."""
    c = c.with_defaults(OMNI2_5)
    width, outputs = c.size("d_model"), c.size("output_dim")
    before = (*waves(c, width), table("audio_bos_eos_token.weight", 2, outputs))
    after = (norm("ln_post", width, "layer"), linear("proj", width, outputs))
    return audio(c, before, after)


@tower("qwen3_omni_moe_audio_encoder")
def qwen3_omni(c: Config) -> Branch:
    """Three convolutions over time and frequency, each halving both."""
    c = c.with_defaults(OMNI3)
    width, channels, bins = c.size("d_model"), c.size("downsample_hidden_size"), c.size("num_mel_bins")
    for _ in range(3):
        bins = (bins + 1) // 2
    before = tuple(
        Convolution(
            name=f"conv2d{i + 1}",
            in_channels=channels if i else 1,
            out_channels=channels,
            kernel=9,
            bias=True,
            part="vision",
        )
        for i in range(3)
    )
    after = (
        norm("ln_post", width, "layer"),
        linear("proj1", width, width),
        linear("proj2", width, c.size("output_dim")),
    )
    return audio(c, (*before, linear("conv_out", channels * bins, width, bias=False)), after, key_bias=True)


def with_positions(c: Config) -> Branch:
    width = c.size("d_model", "hidden_size")
    before = (*waves(c, width), table("embed_positions.weight", c.size("max_source_positions"), width))
    return audio(c, before, (norm("layer_norm", width, "layer"),))


def waves(c: Config, width: int) -> tuple[Op, ...]:
    """The input stage: two convolutions over time, the second with stride 2."""
    return (
        Convolution(
            name="conv1", in_channels=c.size("num_mel_bins"), out_channels=width, kernel=3, bias=True, part="vision"
        ),
        Convolution(name="conv2", in_channels=width, out_channels=width, kernel=3, bias=True, part="vision"),
    )


def audio(c: Config, before: tuple[Op, ...], after: tuple[Op, ...], key_bias: bool = False) -> Branch:
    width, heads = c.size("d_model", "hidden_size"), c.size("encoder_attention_heads", "num_attention_heads")
    if width % heads:
        raise InvalidInput(
            "{where}: encoder_attention_heads ({heads}) must divide d_model ({width}).",
            where=c.where,
            heads=heads,
            width=width,
        )
    feed = plain_mlp(width, c.size("encoder_ffn_dim", "intermediate_size"))
    attention = whisper_attention(c, "self_attn", width, heads, key_bias)
    layer = Block(
        "audio layer",
        (norm("self_attn_layer_norm", width, "layer"), *attention, norm("final_layer_norm", width, "layer"), feed),
    )
    return stack(
        "audio tower", width, [layer], [0] * c.depth("encoder_layers", "num_hidden_layers"), before, after, kind="audio"
    )


def whisper_attention(
    c: Config, name: str, width: int, heads: int, key_bias: bool = False, **options: Any
) -> tuple[Op, ...]:
    """Biases on queries, values and outputs; on keys only where `key_bias`, for they cancel in the softmax."""
    usual = {"bias": True, "kv_bias": key_bias, "causal": False, "names": OUT_PROJ}
    sizes = {"hidden_size": width, "heads": heads, "kv_heads": heads, "head_dim": head_width(c, width, heads)}
    mixer = Attention(name=name, **{**sizes, **usual, **options})
    if key_bias:
        return (mixer,)
    return mixer, Parameter(name=f"{name}.v_proj.bias", elements=width, split="tensor", part="attention")
