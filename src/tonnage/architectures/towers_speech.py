"""Audio encoders beside Whisper's own: Qwen3-ASR, GLM-ASR, Audio Flamingo 3, Voxtral Realtime, Granite Speech.

Sources: transformers 5.24, models/{qwen3_asr,glmasr,audioflamingo3,voxtral_realtime,granite_speech}.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import tower
from tonnage.architectures._towers import linear, plain_mlp, stack, table
from tonnage.architectures.towers_whisper import VOXTRAL, audio, qwen3_omni, waves, with_positions
from tonnage.ops import MLP, Attention, Convolution, Op, Parameter

QWEN3_ASR = {
    "num_mel_bins": 128,
    "d_model": 1024,
    "encoder_layers": 24,
    "encoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "output_dim": 3584,
    "downsample_hidden_size": 480,
}
REALTIME = {
    "num_mel_bins": 128,
    "hidden_size": 1280,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "head_dim": 64,
    "intermediate_size": 5120,
    "sliding_window": 750,
}
GRANITE = {
    "input_dim": 160,
    "num_layers": 10,
    "hidden_dim": 1024,
    "feedforward_mult": 4,
    "num_heads": 8,
    "output_dim": 42,
    "context_size": 200,
    "max_pos_emb": 512,
    "conv_kernel_size": 15,
    "conv_expansion_factor": 2,
}


@tower("qwen3_asr_encoder", "qwen3_asr_audio_encoder")
def qwen3_asr(c: Config) -> Branch:
    """Qwen3-Omni's encoder, smaller; what projects its output stands outside it in transformers, and is the same."""
    return qwen3_omni(c.with_defaults(QWEN3_ASR))


@tower("audioflamingo3_encoder")
def audio_flamingo(c: Config) -> Branch:
    return with_positions(c.with_defaults(VOXTRAL))


@tower("glmasr_encoder")
def glm_asr(c: Config) -> Branch:
    """Rotary positions in place of Whisper's table."""
    c = c.with_defaults(VOXTRAL)
    width = c.size("hidden_size")
    return audio(c, waves(c, width), (norm("norm", width, "layer"),))


@tower("voxtral_realtime_encoder")
def voxtral_realtime(c: Config) -> Branch:
    """Causal, with a window, RMSNorm and a gated feed-forward; biases as Whisper has them, none on keys."""
    c = c.with_defaults(REALTIME)
    width, heads, head = c.size("hidden_size"), c.size("num_attention_heads"), c.size("head_dim")
    mixer = Attention(
        hidden_size=width,
        heads=heads,
        kv_heads=heads,
        head_dim=head,
        bias=True,
        kv_bias=False,
        window=c.size("sliding_window"),
        names=("q_proj", "k_proj", "v_proj", "o_proj"),
    )
    bias = Parameter(name="self_attn.v_proj.bias", elements=heads * head, split="tensor", part="attention")
    feed = MLP(hidden_size=width, intermediate_size=c.size("intermediate_size"), out_bias=True)
    layer = Block(
        "audio layer", (norm("self_attn_layer_norm", width), mixer, bias, norm("final_layer_norm", width), feed)
    )
    layers = [0] * c.depth("num_hidden_layers")
    return stack("audio tower", width, [layer], layers, waves(c, width), (norm("norm", width),), kind="audio")


@tower("granite_speech_encoder")
def granite_speech(c: Config) -> Branch:
    """A conformer whose positions attend within blocks; its own CTC output is fed back at half of its depth."""
    c = c.with_defaults(GRANITE)
    width, labels = c.size("hidden_dim"), c.size("output_dim")
    layer = Block(
        "conformer layer",
        (*_half(c, "ff1"), *_block_attention(c), *_granite_convolutions(c), *_half(c, "ff2"), _layer_norm(c, "post")),
    )
    before = (linear("input_linear", c.size("input_dim"), width),)
    after = (linear("out", width, labels), linear("out_mid", labels, width))
    return stack("granite audio tower", width, [layer], [0] * c.depth("num_layers"), before, after, kind="audio")


def _layer_norm(c: Config, name: str) -> Op:
    return norm(f"{name}_norm", c.size("hidden_dim"), "layer")


def _half(c: Config, name: str) -> tuple[Op, ...]:
    width = c.size("hidden_dim")
    return _layer_norm(c, f"{name}.pre"), plain_mlp(
        width, width * c.size("feedforward_mult"), name, names=("", "up_proj", "down_proj")
    )


def _block_attention(c: Config) -> tuple[Op, ...]:
    """Keys and values in one matrix; a table of distances that all heads share."""
    width, heads = c.size("hidden_dim"), c.size("num_heads")
    head = c.size("dim_head", default=None) or width // heads
    mixer = Attention(
        name="attn",
        hidden_size=width,
        heads=heads,
        kv_heads=heads,
        head_dim=head,
        out_bias=True,
        causal=False,
        window=c.size("context_size"),
        names=("to_q", "to_k", "to_v", "to_out"),
    )
    distances = table("attn.rel_pos_emb.weight", 2 * c.size("max_pos_emb") + 1, head)
    return _layer_norm(c, "attn.pre"), mixer, distances


def _granite_convolutions(c: Config) -> tuple[Op, ...]:
    width = c.size("hidden_dim")
    inner = width * c.size("conv_expansion_factor")
    depth = Convolution(
        name="conv.depth_conv.conv",
        in_channels=1,
        out_channels=inner,
        kernel=c.size("conv_kernel_size"),
        part="vision",
    )
    return (
        _layer_norm(c, "conv"),
        linear("conv.up_conv", width, 2 * inner),
        depth,
        *batch_norm("conv.batch_norm", inner),
        linear("conv.down_conv", inner, width),
    )


def batch_norm(name: str, width: int) -> tuple[Op, ...]:
    """Weight, bias, running mean and variance, and the count of batches."""
    return table(f"{name} of 4 vectors", 4, width), Parameter(name=f"{name}.num_batches_tracked", elements=1)
