"""Pieces that vision and audio towers share, and functions that join a tower to a language model."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tonnage.architectures._config import LARGEST_SIZE, Config
from tonnage.architectures._model import Block, Branch, BranchKind, Model
from tonnage.architectures._parts import NormKind, head_dim, norm
from tonnage.architectures._registry import MODEL_TYPES, TOWERS, find
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName, shown
from tonnage.ops import MLP, Attention, Convolution, Linear, Op, Parameter

FC = ("", "fc1", "fc2")  # names of the two matrices of an MLP without a gate
OUT_PROJ = ("q_proj", "k_proj", "v_proj", "out_proj")
TEXT_SECTIONS = ("text_config", "llm_config")


# Text sections in wrappers' files leave out the fields that equal their class's defaults: these (transformers 5.23).
TEXT_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {
        "vocab_size": 32_000,
        "hidden_size": 4096,
        "intermediate_size": 11_008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
    },
    "mistral": {
        "vocab_size": 32_000,
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "sliding_window": 4096,
    },
    "qwen2": {
        "vocab_size": 151_936,
        "hidden_size": 4096,
        "intermediate_size": 22_016,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "max_position_embeddings": 32_768,
    },
}


def language_model(c: Config, default: str) -> Model:
    """The Model of the text section alone, by its architectures or model_type (`default` where it names none).

    A flat config (Qwen2-VL's first releases) is read as a text config of type `default`.
    """
    text = text_section(c, default)
    if not text.items("architectures", default=[]):
        return find(MODEL_TYPES, text.text("model_type"))(text)
    from tonnage.architectures import family_of

    return family_of(text)(text)


def text_section(c: Config, default: str) -> Config:
    """The text section with its model type, its class's defaults and the wrapper's tie_word_embeddings."""
    section = c.section(*TEXT_SECTIONS, required=False)
    if section is None:
        flat = {
            name: value
            for name, value in c.fields.items()
            if name not in ("architectures", "vision_config", "audio_config")
        }
        section = c.with_fields({**flat, "model_type": default})
    model_type = section.text("model_type", default=None) or default
    fields = {**section.fields, "model_type": model_type}
    if (
        "tie_word_embeddings" in c
    ):  # transformers ties where either section says so (llava, qwen2_vl, glm4v, minimax_m3_vl)
        fields["tie_word_embeddings"] = c.flag("tie_word_embeddings") or section.flag(
            "tie_word_embeddings", default=False
        )
    absent = {
        name: value for name, value in TEXT_DEFAULTS.get(model_type, {}).items() if name not in fields
    }  # an explicit null is kept
    text = section.with_fields(fields)
    return text.with_defaults(absent) if absent else text


def tower(c: Config, default: str, section: str = "vision_config") -> Branch:
    """The branch of a tower's section, by its model_type, or as `default` where it names none."""
    part = c.section(section)
    model_type = part.text("model_type", default=None) or default
    try:
        build = find(TOWERS, model_type)
    except UnknownName as error:
        raise MissingDatum(
            "{where} is a tower that tonnage does not describe: {error}", where=part.where, error=error
        ) from None
    return build(part)


def tower_if_any(c: Config, default: str, section: str = "vision_config") -> Branch | None:
    """The branch of a tower's section; None where the config has no such section."""
    return tower(c, default, section) if section in c else None


def tower_or(c: Config, default: str, section: str = "vision_config") -> Branch:
    """The branch of a tower's section; the tower `default` with its own defaults where the config has no such
    section.
    """
    if section in c:
        return tower(c, default, section)
    return find(TOWERS, default)(c.absent_section(section))


def joined(text: Model, family: str, *towers: Branch | None, notes: Sequence[str] = ()) -> Model:
    """The language model with its towers as further branches."""
    branches = text.branches + tuple(branch for branch in towers if branch is not None)
    return replace(text, family=family, branches=branches, notes=(*text.notes, *notes))


def projected(branch: Branch, *ops: Op) -> Branch:
    """The tower with `ops` (its projector) at its end."""
    return replace(branch, after=branch.after + ops)


def linear(name: str, inputs: int, outputs: int, bias: bool = True) -> Linear:
    """A matrix of a projector; no runtime shards it over tensor ranks by default."""
    return Linear(name=name, in_features=inputs, out_features=outputs, bias=bias, part="vision")


def table(name: str, rows: int, width: int) -> Parameter:
    """A learned table of positions or tiles, not an embedding of the vocabulary."""
    return Parameter(name=name, elements=rows * width, part="vision")


def patches(c: Config, name: str, taps: int, width: int, bias: bool = True) -> Convolution:
    """The patch embedding: `taps` pixels of each of num_channels channels -> `width`."""
    channels = c.size("num_channels", "in_channels", "in_chans", default=3)
    return Convolution(name=name, in_channels=channels, out_channels=width, kernel=taps, bias=bias, part="vision")


def pair(c: Config, *names: str) -> tuple[int, int]:
    """A height and a width; a single number means both."""
    for name in names:
        value = c.raw(name)
        if isinstance(value, list | tuple):
            high, wide = whole_numbers(c, name, 2)
            return high, wide
    side = c.size(*names)
    return side, side


def whole_numbers(c: Config, name: str, length: int | None = None, smallest: int = 1) -> list[int]:
    """A list of whole numbers, of `length` items if it is set."""
    numbers = c.items(name)
    right = all(type(item) is int and smallest <= item <= LARGEST_SIZE for item in numbers)
    if not right or length not in (None, len(numbers)):
        count = "" if length is None else f"{length} "
        raise InvalidInput(
            "{where}: {name} must hold {count}whole numbers from {smallest}. Got {given}.",
            where=c.where,
            name=name,
            count=count,
            smallest=smallest,
            given=shown(numbers),
        )
    return numbers


def patch_area(c: Config) -> int:
    """Pixels of one patch."""
    height, width = pair(c, "patch_size")
    return height * width


def grid(c: Config) -> int:
    """Patches of the image size that the tower was built for."""
    (high, wide), (tall, broad) = pair(c, "image_size"), pair(c, "patch_size")
    if high < tall or wide < broad:
        raise InvalidInput(
            "{where}: image_size ({high} x {wide}) must be at least patch_size ({tall} x {broad}).",
            where=c.where,
            high=high,
            wide=wide,
            tall=tall,
            broad=broad,
        )
    return (high // tall) * (wide // broad)


def bidirectional(c: Config, **options: Any) -> Attention:
    """Attention of a tower: every patch sees every other, and nothing is cached."""
    if "heads" not in options:
        options["heads"] = c.size("num_attention_heads", "num_heads")
    options.setdefault("hidden_size", c.size("hidden_size", default=None))
    options.setdefault("kv_heads", options["heads"])
    if "head_dim" not in options:
        options["head_dim"] = head_dim(c)
    return Attention(**{"bias": True, "causal": False, **options})


def plain_mlp(width: int, inner: int, name: str = "mlp", **options: Any) -> MLP:
    """Two matrices with biases."""
    return MLP(
        **{
            "name": name,
            "hidden_size": width,
            "intermediate_size": inner,
            "gated": False,
            "bias": True,
            "names": FC,
            **options,
        }
    )


def vision_layer(
    width: int,
    mixer: Op,
    feed: Op,
    norms: tuple[str, str] = ("layer_norm1", "layer_norm2"),
    kind: NormKind = "layer",
    extra: Sequence[Op] = (),
    name: str = "vision layer",
) -> Block:
    """Norm, attention, norm, feed-forward; `extra`: operations beside them (layer scales, gates)."""
    return Block(name, (norm(norms[0], width, kind), mixer, norm(norms[1], width, kind), feed, *extra))


def stack(
    name: str,
    width: int,
    blocks: Sequence[Block],
    layers: Sequence[int],
    before: Sequence[Op] = (),
    after: Sequence[Op] = (),
    kind: BranchKind = "vision",
) -> Branch:
    """The branch of a tower."""
    return Branch(
        name=name,
        kind=kind,
        hidden_size=width,
        before=tuple(before),
        blocks=tuple(blocks),
        layers=tuple(layers),
        after=tuple(after),
    )
