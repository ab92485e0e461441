"""Tensors of a checkpoint: the part of the model that each belongs to, and the number of parameters in it.

Quantised checkpoints pack several values into one stored number and add scales; this module undoes both from names,
types and shapes alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Literal

from msgspec import Struct

from tonnage.architectures import TensorGroup, TensorSummary
from tonnage.kernel.errors import InvalidInput

# ---- The part of a model that a tensor belongs to, by its name in checkpoints and GGUF files.

_VISION = ("vision_tower", "visual.", "vision_model", "vision_encoder", "vision_embed", "mm_projector", "embed_vision",
           "multi_modal_projector", "image_newline", "view_seperator", "patch_merger", "vision_adapter")  # fmt: skip
_AUDIO = ("audio_tower", "audio_model", "audio_encoder", "embed_audio", "audio_projector", "speech_encoder")
_EMBEDDINGS = ("embed_tokens", "wte", "wpe", "word_embeddings", "tok_embeddings", "token_embd", "embed_in", "embed",
               "embeddings", "embed_positions", "position_embd", "position_embeddings", "embed_tokens_per_layer",
               "token_type_embeddings", "per_layer_token_embd", "shared", "token_types")  # fmt: skip
_HEADS = ("lm_head", "output", "embed_out", "head", "score", "classifier")
_NORMS = ("norm", "ln_", "layernorm", "layer_norm")
_ATTENTION = ("attn", "attention", "q_proj", "k_proj", "v_proj", "o_proj", "qkv")
_MIXERS = ("mixer", "mamba", "ssm_", "linear_attn", "conv1d", "short_conv", "shortconv", "time_mix", "rglru")
_MLPS = ("mlp", "ffn", "feed_forward", "fc1", "fc2", "dense_h_to_4h", "dense_4h_to_h", "block_sparse_moe", "moe")
_ROUTERS = (
    "gate",
    "router",
    "gate_inp",
    "ffn_gate_inp",
    "exp_probs_b",
    "shared_expert_gate",
    "ffn_gate_inp_shexp",
    "wg",
)


def part_of(name: str) -> str:
    """The part by name alone. Layers' numbers may stand as they are or as N.

    >>> part_of("model.layers.3.mlp.experts.17.gate_proj.weight")
    'experts'
    >>> part_of("blk.0.attn_norm.weight")
    'norm'
    """
    if any(word in name for word in _VISION) or name.startswith(("v.", "mm.")):
        return "vision"
    if any(word in name for word in _AUDIO) or name.startswith("a."):
        return "audio"
    names = name.split(".")
    module = names[-2] if len(names) > 1 and names[-1] in ("weight", "bias", "qweight", "weight_packed") else names[-1]
    if any(part.isdigit() or part == "N" for part in names):
        return _in_layer(name, names, module)
    if module in _EMBEDDINGS:
        return "embedding"
    if module in _HEADS or names[0] == "lm_head":
        return "head"
    return "norm" if _any(_NORMS, module) else "other"


def _in_layer(name: str, names: list[str], module: str) -> str:
    if "_exps" in module or ("experts" in names and not module.startswith("shared")):
        return "experts"
    if (
        (module in _ROUTERS and _any((*_MLPS, "gate_inp", "router", "mixer"), name))
        or "e_score_correction_bias" in names
        or "router" in names
    ):
        return "router"
    if _any(_NORMS, module):
        return "norm"
    if module in ("embed_tokens", "shared_head") or names[-3:-1] == ["shared_head", "head"]:
        return "head" if "head" in names else "embedding"
    for part, words in (("mixer", _MIXERS), ("attention", _ATTENTION), ("mlp", _MLPS)):
        if _any(words, name):
            return part
    return "other"


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


Role = Literal["weight", "scale", "buffer"]
MAX_PATTERNS = (
    50_000  # names without their numbers: a model has some dozens, one that glues numbers to words some thousands
)
_LAYERS = re.compile(r"(?:^|\.)(?:layers|h|blk|blocks|block|layer)\.(N)\.")
_NUMBER = re.compile(r"(?<![0-9A-Za-z_])\d+(?![0-9A-Za-z_])")


class Tensor(Struct, frozen=True, array_like=True, gc=False):
    """One stored tensor: rows first in `shape`, as PyTorch has them; `bytes` as the file stores it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    file: int = 0

    @property
    def elements(self) -> int:
        return prod(self.shape)


# Names that only quantisers use for data beside a weight.
_SCALES = frozenset({
    "weight_scale_inv", "weight_scale", "weight_scale_2", "weight_global_scale", "weight_zero_point", "weight_g_idx",
    "weight_shape", "weight_scales", "input_scale", "input_scale_inv", "input_global_scale", "input_zero_point",
    "output_scale", "k_scale", "v_scale", "q_scale", "kv_scale", "pre_quant_scale", "activation_scale",
    "gate_up_proj_scale", "down_proj_scale", "gate_up_proj_scale_2", "down_proj_scale_2",
    "gate_up_proj_scale_inv", "down_proj_scale_inv", "gate_up_proj_input_scale", "down_proj_input_scale",
    "gate_up_proj_scales", "down_proj_scales", "gate_up_proj_weight_scale", "down_proj_weight_scale",
    "qzeros", "g_idx", "absmax", "quant_map", "nested_absmax", "nested_quant_map", "SCB", "weight_format",
    "q_scale_max", "q_groups", "q_perm", "q_invperm", "suh", "svh", "mcg", "mul1", "su", "sv", "codebooks", "qscales",
    "_scale", "_scale_and_zero", "_zero_point",
})  # fmt: skip
# Names that are a quantiser's only beside a weight that it packed or rounded.
_BESIDE = frozenset({"scale", "scales", "biases", "zeros", "meta"})
_BUFFERS = frozenset(
    {
        "inv_freq",
        "original_inv_freq",
        "masked_bias",
        "position_ids",
        "num_batches_tracked",
        "running_mean",
        "running_var",
        "relative_position_index",
        "relative_coords_table",
        "cos_cached",
        "sin_cached",
        "causal_mask",
        "attn_mask",
    }
)
# The projection that joins hidden state and embedding, and its norms.
_JOINS = (".eh_proj.", ".enorm.", ".hnorm.", ".nextn.", ".shared_head.")
_GGUF_BUFFERS = frozenset({"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"})
_FLOAT8 = frozenset({"F8_E4M3", "F8_E8M0", "F8_E5M2"})
_WHOLE = frozenset({"U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"})
_PACKED = frozenset(
    {"qweight", "weight_packed", "q_weight", "trellis", "W_q", "gate_up_proj_blocks", "down_proj_blocks", "codes"}
)


class Item(Struct, frozen=True, gc=False):
    """A tensor and its classification: `layer` is its number in the language model's stack of layers, None outside of
    it; `draft`: it is named as multi-token prediction; `joins`: only a layer of multi-token prediction has such a
    tensor.
    """

    tensor: Tensor
    part: str
    role: Role
    parameters: int
    layer: int | None
    draft: bool
    joins: bool


class _Known(Struct, frozen=True):
    """The classification of a name without its numbers."""

    part: str
    last: str
    role: Role | None
    draft: bool
    joins: bool
    stack: str


def describe(tensors: Sequence[Tensor], bits: int | None = None) -> list[Item]:
    """Classify each tensor: its part, its role, and the model's parameters in it. `bits`: of packed weights, if the
    config states them.
    """
    by_name = {tensor.name: tensor for tensor in tensors}
    patterns = [_NUMBER.sub("N", tensor.name) for tensor in tensors]
    if len(set(patterns)) > MAX_PATTERNS:
        raise InvalidInput(
            "the tensors have more than {most_patterns:,} different names, numbers aside, so they are no model's.",
            most_patterns=MAX_PATTERNS,
        )
    known = [_of_pattern(pattern) for pattern in patterns]
    stack = _main_stack(tensors, known)
    items = []
    for tensor, pattern_facts in zip(tensors, known, strict=True):
        role = pattern_facts.role or _role(tensor, pattern_facts.last, by_name)
        count = logical(tensor, pattern_facts.last, by_name, bits) if role == "weight" else 0
        layer = _number_after(tensor.name, stack) if pattern_facts.stack and tensor.name.startswith(stack) else None
        items.append(Item(tensor, pattern_facts.part, role, count, layer, pattern_facts.draft, pattern_facts.joins))
    return items


def summarize(
    items: Iterable[Item], form: Literal["safetensors", "gguf"], files: int, layers: int | None = None
) -> TensorSummary:
    """Sum tensors by part, type and role. `layers`: those of the model proper; later ones are multi-token
    prediction.
    """
    sums: dict[tuple[str, str, Role], list[int]] = {}
    for item in items:
        behind = layers is not None and item.layer is not None and item.layer >= layers
        sums_of_group = sums.setdefault(
            ("draft" if behind or item.draft else item.part, item.tensor.dtype, item.role), [0, 0, 0, 0]
        )
        sums_of_group[0] += 1
        sums_of_group[1] += item.tensor.elements
        sums_of_group[2] += item.parameters
        sums_of_group[3] += item.tensor.bytes
    groups = (TensorGroup(*key, *values) for key, values in sorted(sums.items()))
    return TensorSummary(format=form, files=files, groups=tuple(groups))


@lru_cache(maxsize=4096)
def _of_pattern(pattern: str) -> _Known:
    head, _, last = pattern.rpartition(".")
    part = part_of(pattern)
    role: Role | None = None
    if last in _SCALES or (last.endswith("_scales") and "_proj" in last) or ".quant_state." in pattern:
        part, role = part_of(head or pattern), "scale"
    elif last in _BUFFERS or pattern in _GGUF_BUFFERS or "rope_factors" in pattern:
        role = "buffer"
    match = _LAYERS.search(pattern)
    stack = (
        pattern[: match.start(1)]
        if match and part not in ("vision", "audio") and "N" not in pattern[: match.start(1)]
        else ""
    )
    joins = any(word in pattern for word in _JOINS)
    return _Known(part, last, role, _is_draft(pattern), joins, stack)


def _main_stack(tensors: Sequence[Tensor], known: Sequence[_Known]) -> str:
    """The prefix of the language model's layers: of all stacks, the one with the most bytes that is no tower's or
    draft's.
    """
    sizes: dict[str, int] = {}
    for tensor, pattern_facts in zip(tensors, known, strict=True):
        if pattern_facts.stack and not pattern_facts.draft:
            sizes[pattern_facts.stack] = sizes.get(pattern_facts.stack, 0) + tensor.bytes + 1
    return max(sizes, key=sizes.__getitem__, default="")


def _number_after(name: str, stack: str) -> int | None:
    number = name[len(stack) :].partition(".")[0]
    return int(number) if number.isdecimal() and len(number) < 7 else None


def _is_draft(pattern: str) -> bool:
    """Whether a tensor is named as multi-token prediction."""
    return pattern.startswith(("mtp.", "model.mtp.", "mtp_", "model.mtp_")) or ".mtp." in pattern or ".mtp_" in pattern


def _role(tensor: Tensor, last: str, by_name: Mapping[str, Tensor]) -> Role:
    if last in _BESIDE and _partner(tensor.name, by_name) is not None:
        return "scale"
    if last == "bias" and len(tensor.shape) == 4 and tensor.shape[:2] == (1, 1):
        return "buffer"  # GPT-2 and GPT-NeoX store their causal mask as attn.bias
    return "weight"


def _partner(name: str, by_name: Mapping[str, Tensor]) -> Tensor | None:
    """The rounded or packed weight that a `scales` tensor belongs to."""
    stem = name.rpartition(".")[0]
    for last in ("weight", "qweight", "W_q", "codes"):
        weight = by_name.get(f"{stem}.{last}")
        if weight is not None and (weight.dtype in _FLOAT8 or weight.dtype[0] in "UI"):
            return weight
    return None


def logical(tensor: Tensor, last: str, by_name: Mapping[str, Tensor], bits: int | None) -> int:
    """Number of the model's parameters in a stored weight."""
    if last in _PACKED or tensor.dtype in ("U8", "I8", "U32", "I32"):
        return _unpacked(tensor, last, by_name, bits)
    return tensor.elements


def _unpacked(tensor: Tensor, last: str, by_name: Mapping[str, Tensor], bits: int | None) -> int:
    stem = tensor.name.rpartition(".")[0]
    count = _from_neighbours(tensor, last, stem, by_name)
    if count is not None:
        return count
    if last.endswith("_blocks") or f"{tensor.name}.absmax" in by_name:
        return 2 * tensor.elements  # MXFP4 of gpt-oss, and 4-bit bitsandbytes: two values a byte
    if tensor.dtype in ("U32", "I32"):
        packed = last in _PACKED or f"{stem}.scales" in by_name
        return tensor.elements * 32 // (bits or 4) if packed else tensor.elements  # GPTQ, MLX, compressed-tensors
    if last in _PACKED:
        return 2 * tensor.elements  # compressed-tensors' nvfp4 and mxfp4, HQQ
    scale = next((near for name in _scale_names(tensor.name, stem) if (near := by_name.get(name)) is not None), None)
    # One 8-bit float for a block of 16 or 32 values: NVFP4 and MXFP4, two values a byte. int8 has wider scales.
    return (
        2 * tensor.elements if scale is not None and scale.dtype in _FLOAT8 and scale.elements > 1 else tensor.elements
    )


def _from_neighbours(tensor: Tensor, last: str, stem: str, by_name: Mapping[str, Tensor]) -> int | None:
    """Inputs x outputs, where the tensors beside a packed weight state them for any number of bits."""
    near = lambda name: by_name.get(f"{stem}.{name}")  # noqa: E731
    if last == "qweight" and len(tensor.shape) == 2 and (scales := near("scales")) is not None and scales.shape:
        if (order := near("g_idx")) is not None:
            return order.elements * scales.shape[-1]  # GPTQ
        if tensor.shape[-1] != scales.shape[-1]:
            return tensor.shape[0] * scales.shape[-1]  # AWQ packs the outputs, so its rows are the inputs
    if last == "q_weight" and tensor.shape and (inverse := near("q_invperm")) is not None:
        return inverse.elements * tensor.shape[-1]  # EXL2
    if last == "trellis" and (into := near("suh")) is not None and (out := near("svh")) is not None:
        return into.elements * out.elements  # EXL3
    if (
        last == "codes"
        and (books := near("codebooks")) is not None
        and len(books.shape) == 4
        and len(tensor.shape) == 3
    ):
        return tensor.shape[0] * tensor.shape[1] * books.shape[2] * books.shape[3]  # AQLM
    return None


def bounds(items: Iterable[Item]) -> tuple[int, int]:
    """How many parameters fewer, and how many more, packed whole numbers may hold than the count assumes.

    An unknown packing may keep one value in each number, or one in each bit.
    """
    fewer = more = 0
    for item in items:
        if item.role == "weight" and item.tensor.dtype in _WHOLE:
            fewer += max(item.parameters - item.tensor.elements, 0)
            more += max(8 * item.tensor.bytes - item.parameters, 0)
    return fewer, more


def _scale_names(name: str, stem: str) -> tuple[str, ...]:
    return f"{stem}.weight_scale", f"{stem}.scale", f"{name}_scale", f"{name}_scale_inv", f"{name}_weight_scale"


def packed_bits(config: Mapping[str, Any]) -> int | None:
    """Bits of packed integer weights, from quantization_config in any of its forms."""
    text = config.get("text_config")
    inner = text if isinstance(text, Mapping) else {}
    for section in (config, inner):
        for key in ("quantization_config", "compression_config", "quantization"):
            bits = _bits(section.get(key))
            if bits is not None:
                return bits
    return None


def _bits(section: Any) -> int | None:
    if not isinstance(section, Mapping):
        return None
    groups = section.get("config_groups")
    weights = (
        [group.get("weights") for group in groups.values() if isinstance(group, Mapping)]
        if isinstance(groups, Mapping)
        else []
    )
    widths = [
        section.get("bits"),
        section.get("w_bit"),
        *(w.get("num_bits") for w in weights if isinstance(w, Mapping)),
    ]
    return next((bits for bits in widths if isinstance(bits, int) and 1 <= bits <= 16), None)


# ---- Facts of a model from the names and shapes of its tensors: table, head, layers, width, parameters.

_TABLES = (
    "embed_tokens.weight",
    "wte.weight",
    "word_embeddings.weight",
    "tok_embeddings.weight",
    "token_embd.weight",
    "embed_in.weight",
    "embeddings.weight",
    "embedding.weight",
    "embed.weight",
    "shared.weight",
    "wte.embedding.weight",
)
_FINAL_NORMS = (
    "norm.weight",
    "ln_f.weight",
    "final_layernorm.weight",
    "final_layer_norm.weight",
    "output_norm.weight",
    "norm_f.weight",
    "final_norm.weight",
)


class Facts(Struct, frozen=True, kw_only=True):
    """`layers` counts all stored layers of the language model, `per_layer` their parameters; `drafts` are the
    parameters of tensors named as multi-token prediction.
    """

    rows: int | None
    width: int | None
    head: bool
    head_parameters: int
    layers: int
    per_layer: Mapping[int, int]
    draft_layers: int
    drafts: int
    parameters: int

    @property
    def model_layers(self) -> int:
        """Layers of the model proper: all stored ones, less those at the end that are multi-token prediction."""
        return self.layers - self.draft_layers

    def drafts_behind(self, layers: int) -> int:
        """Parameters of multi-token prediction: tensors named so, and layers behind the model's last."""
        if self.model_layers != layers:
            return self.drafts
        return self.drafts + sum(count for layer, count in self.per_layer.items() if layer >= layers)


def observe(items: Sequence[Item]) -> Facts:
    table = _table(items)
    per_layer: dict[int, int] = {}
    behind: set[int] = set()
    total = drafts = head = 0
    for item in items:
        total += item.parameters
        if item.layer is not None:
            per_layer[item.layer] = per_layer.get(item.layer, 0) + item.parameters
            if item.joins:
                behind.add(item.layer)
        elif item.draft:
            drafts += item.parameters
        elif item.part == "head":
            head += item.parameters
    layers = max(per_layer, default=-1) + 1
    last = next((count for count in range(len(behind) + 1) if layers - 1 - count not in behind), 0)
    return Facts(
        rows=table.shape[0] if table else None,
        width=_width(table, items),
        head=head > 0,
        head_parameters=head,
        layers=layers,
        per_layer=per_layer,
        draft_layers=last,
        drafts=drafts,
        parameters=total,
    )


def _table(items: Sequence[Item]) -> Tensor | None:
    """The embedding table of the tokens."""
    tables = [
        item.tensor
        for item in items
        if item.part == "embedding"
        and item.layer is None
        and not item.draft
        and item.tensor.name.endswith(_TABLES)
        and len(item.tensor.shape) == 2
    ]
    return max(tables, key=lambda tensor: tensor.shape[0], default=None)


def _width(table: Tensor | None, items: Sequence[Item]) -> int | None:
    """The model's width: the table's columns, unless the final norm contradicts them (a table may be narrower)."""
    if table is None or table.dtype in ("U32", "I32", "U8", "I8"):
        return None
    norms = {
        item.tensor.shape[0]
        for item in items
        if item.part == "norm"
        and item.layer is None
        and not item.draft
        and item.tensor.name.endswith(_FINAL_NORMS)
        and len(item.tensor.shape) == 1
    }
    return table.shape[1] if table.shape[1] in norms or not norms else None
