"""Phi-4-multimodal: SigLIP, a conformer, projectors, Phi-4-mini; Microsoft's files add adapters to every layer.

Structure: transformers 5.23, models/phi4_multimodal; microsoft/Phi-4-multimodal-instruct modeling_phi4mm.py, whose
config names the conformer's sizes in audio_processor and the adapters' ranks in vision_lora and speech_lora.
"""

from math import log2
from typing import Any

from msgspec.structs import replace

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import architecture, tower
from tonnage.architectures._towers import bidirectional, joined, linear, projected, stack, table, tower_or
from tonnage.architectures.phi import phi4_text
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention, Convolution, Linear, Op, Parameter

AUDIO = {
    "hidden_size": 1024, "intermediate_size": 1536, "num_blocks": 24, "num_attention_heads": 16, "kernel_size": 3,
    "ext_pw_out_channel": 1024, "depthwise_separable_out_channel": 1024, "depthwise_multiplier": 1, "input_size": 80,
    "time_reduction": 8, "bias_max_distance": 1000, "bias_symmetric": False, "nemo_conv_channels": 1024,
    "downsample_rate": 1,
}  # fmt: skip
RENAMED = {
    "hidden_size": "attention_dim",
    "intermediate_size": "linear_units",
    "num_attention_heads": "attention_heads",
}
NESTED = (
    ("bias_max_distance", "relative_attention_bias_args", "t5_bias_max_distance"),
    ("nemo_conv_channels", "nemo_conv_settings", "conv_channels"),
)
NO_ADAPTERS = "The adapters that Microsoft's checkpoint holds beside the weights are loaded apart and are not counted."


@architecture("Phi4MultimodalForCausalLM", model_types=("phi4_multimodal",))
def phi4_multimodal(c: Config) -> Model:
    return with_towers(c, (NO_ADAPTERS,))


@architecture("Phi4MMForCausalLM", model_types=("phi4mm",))
def phi4mm(c: Config) -> Model:
    audio = audio_fields(c)
    text = with_towers(c.with_fields({**c.fields, "audio_config": audio}), ())
    ranks = sum(
        section.size("r") for name in ("vision_lora", "speech_lora") if (section := c.section(name, required=False))
    )
    if not ranks:
        return text
    main, *others = text.branches
    blocks = tuple(Block(block.name, block.ops + adapters(block, ranks)) for block in main.blocks)
    return replace(text, branches=(replace(main, blocks=blocks), *others))


def audio_fields(c: Config) -> dict[str, Any]:
    """The fields of audio_processor.config under transformers' names."""
    processor = c.section("audio_processor", required=False)
    settings = processor.section("config", required=False) if processor is not None else None
    if settings is None:
        return {"model_type": "phi4_multimodal_audio"}
    fields = {name: settings.raw(RENAMED.get(name, name)) for name in AUDIO}
    for name, section, inner in NESTED:
        part = settings.section(section, required=False)
        fields[name] = None if part is None else part.raw(inner)
    return {
        "model_type": "phi4_multimodal_audio",
        **{name: value for name, value in fields.items() if value is not None},
    }


def adapters(block: Block, ranks: int) -> tuple[Op, ...]:
    """Two low-rank matrices for each matrix of a layer; fused matrices have one pair."""
    ops: tuple[Op, ...] = ()
    for op in block.ops:
        if isinstance(op, Attention):
            width = op.query_width + op.key_width + op.value_width
            ops += low_rank("self_attn.qkv_proj", op.hidden_size, width, ranks) + low_rank(
                "self_attn.o_proj", op.out_width, op.hidden_size, ranks
            )
        elif isinstance(op, MLP):
            ops += low_rank("mlp.gate_up_proj", op.hidden_size, 2 * op.intermediate_size, ranks)
            ops += low_rank("mlp.down_proj", op.intermediate_size, op.hidden_size, ranks)
    return ops


def low_rank(name: str, inputs: int, outputs: int, rank: int) -> tuple[Op, ...]:
    return (
        Linear(name=f"{name}.lora_A", in_features=inputs, out_features=rank, part="mlp"),
        Linear(name=f"{name}.lora_B", in_features=rank, out_features=outputs, part="mlp"),
    )


def with_towers(c: Config, notes: tuple[str, ...]) -> Model:
    text = phi4_text(c)
    vision, audio = tower_or(c, "phi4_multimodal_vision"), tower_or(c, "phi4_multimodal_audio", "audio_config")
    h, seen = text.hidden_size, vision.hidden_size
    marks = (
        Parameter(name="global_img_feature_extensor", elements=seen, part="vision"),
        Parameter(name="sub_img_feature_extensor", elements=seen, part="vision"),
    )
    vision = projected(vision, linear("img_projection_up", seen, h), linear("img_projection_down", h, h), *marks)
    heard = audio.hidden_size * (c.section("audio_config", required=False) or c.absent_section("audio_config")).size(
        "downsample_rate", default=1
    )
    for kind in ("speech", "vision_speech"):  # one pair for sound alone, one for sound with images
        audio = projected(audio, linear(f"up_proj_for_{kind}", heard, h), linear(f"down_proj_for_{kind}", h, h))
    return joined(text, "phi4_multimodal", vision, audio, notes=notes)


@tower("phi4_multimodal_audio")
def conformer(c: Config) -> Branch:
    """Strided convolutions, then layers of half a feed-forward, attention, a convolution, and the other half."""
    c = c.with_defaults(AUDIO)
    width, heads = c.size("hidden_size"), c.size("num_attention_heads")
    if width % heads:
        raise InvalidInput(
            "{where}: {@num_attention_heads} ({heads}) must divide {@hidden_size} ({width}).",
            where=c.where,
            heads=heads,
            width=width,
        )
    mixer = bidirectional(c, heads=heads, head_dim=width // heads)
    halves = [half_step(c, name) for name in ("feed_forward_in", "feed_forward_out")]
    last = norm("layer_norm", width, "layer")
    layer = Block(
        "conformer layer",
        (*halves[0], norm("layer_norm_att", width, "layer"), mixer, *convolutions(c), *halves[1], last),
    )
    return stack("phi 4 audio tower", width, [layer], [0] * c.depth("num_blocks"), first(c), kind="audio")


def first(c: Config) -> tuple[Op, ...]:
    """Mean and variance of the input, the table of biases, and strided convolutions, depth-wise after the first."""
    width, channels, bins = c.size("hidden_size"), c.size("nemo_conv_channels"), c.size("input_size")
    buckets = c.size("bias_max_distance") * (1 if c.flag("bias_symmetric") else 2)
    ops: tuple[Op, ...] = (
        table("encoder_embedding.global_mean and global_invstd", 2, bins),
        table("relative_attention_bias_layer.bias_values.weight", buckets, c.size("num_attention_heads")),
        filters("embed.conv.0", 1, channels, 9),
    )
    halvings = int(log2(c.size("time_reduction")))
    for i in range(1, halvings):
        ops += (
            filters(f"embed.conv.{3 * i - 1}", 1, channels, 9),
            filters(f"embed.conv.{3 * i}", channels, channels, 1),
        )
    for _ in range(halvings):
        bins = (bins - 1) // 2 + 1
    return (*ops, linear("embed.out", channels * bins, width))


def filters(name: str, inputs: int, outputs: int, taps: int) -> Convolution:
    return Convolution(name=name, in_channels=inputs, out_channels=outputs, kernel=taps, bias=True, part="vision")


def half_step(c: Config, name: str) -> tuple[Op, ...]:
    width = c.size("hidden_size")
    names = ("gate_up_proj", "gate_up_proj", "down_proj")
    feed = MLP(name=name, hidden_size=width, intermediate_size=c.size("intermediate_size"), bias=True, names=names)
    # the gate and the up projection are one matrix with one bias of both their widths
    return norm(f"{name}.layer_norm", width, "layer"), feed


def convolutions(c: Config) -> tuple[Op, ...]:
    width, outer = c.size("hidden_size"), c.size("ext_pw_out_channel")
    inner, separable = width * c.size("depthwise_multiplier"), c.size("depthwise_separable_out_channel")
    return (
        norm("conv.layer_norm", width, "layer"),
        linear("conv.glu.ext_pw_conv_1d", width, 2 * outer),
        table("conv.glu.b1 and b2", 2, outer),
        filters("conv.dw_sep_conv_1d.dw_conv", 1, inner, c.size("kernel_size")),
        linear("conv.dw_sep_conv_1d.pw_conv", inner, separable),
        linear("conv.ext_pw_conv_1d", outer, outer),
    )
