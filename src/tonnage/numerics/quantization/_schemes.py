"""Bytes of quantised matrices, from one scheme of a quantization_config.

What is stored beside a matrix depends on the tool: AutoGPTQ writes the group of each column, modelopt a scale for the
activations, compressed-tensors the original shape. Each is read from that tool's export code (`source` of a precision).
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message, listed
from tonnage.numerics.precisions import Precision, Scale, grouped, precision

SCALAR = 4  # bytes of one fp32 scale of a tensor
SHAPE = 16  # bytes of weight_shape: two int64
MAX_COLUMNS = 2**20  # columns; no matrix of a language model has more
PACKED = (2, 3, 4, 8)  # bits that GPTQ, AWQ and auto-round pack


def missing(what: str) -> MissingDatum:
    return MissingDatum(
        "quantization_config: {what} does not say one precision for the matrices that it stores.", what=what
    )


def whole_number(config: Mapping[str, Any], *names: str, default: Any = None) -> Any:
    """The first of these fields that is set; it must be a whole number, or None where none is set."""
    name = next((name for name in names if config.get(name) is not None), names[0])
    value = config.get(name, default)
    if value is not None and type(value) is not int:
        raise InvalidInput(
            "quantization_config: {name} must be a whole number. Got {value}.", name=name, value=shown(value)
        )
    return default if value is None else value


def bit_width(config: Mapping[str, Any], *names: str, choices: Collection[int], default: Any = None) -> int:
    """Bits of a weight."""
    bits = whole_number(config, *names, default=default)
    if bits not in choices:
        known = listed(map(str, choices))
        raise InvalidInput(
            "quantization_config: {names} must be one of {known}. Got {bits}.",
            names=names[0],
            known=known,
            bits=shown(bits),
        )
    return int(bits)


def group_columns(config: Mapping[str, Any], *names: str, default: int | None = None) -> int:
    """Columns that share a scale; 0: all of a row, which configs write as -1 or leave out."""
    size = whole_number(config, *names, default=default)
    if size is not None and not (size == -1 or 1 <= size <= MAX_COLUMNS):
        raise InvalidInput(
            "quantization_config: {names} must be -1 (whole rows) or from 1 to {widest}. Got {size}.",
            names=names[0],
            widest=MAX_COLUMNS,
            size=shown(size),
        )
    return max(size or 0, 0)


def two_sizes(value: Any, name: str) -> tuple[int, int]:
    """Rows and columns of a block, as [128, 128] or "128x128"."""
    parts: Any = value.split("x") if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    sizes = [int(part) if isinstance(part, str) and _SIZE.fullmatch(part) else part for part in parts]
    if len(sizes) == 2 and all(type(size) is int and 1 <= size <= MAX_COLUMNS for size in sizes):
        return sizes[0], sizes[1]
    raise InvalidInput(
        "quantization_config: {name} must hold two sizes from 1 to {widest}. Got {value}.",
        name=name,
        widest=MAX_COLUMNS,
        value=shown(value),
    )


_SIZE = re.compile(r"[0-9]{1,8}")


def packed_integers(config: Mapping[str, Any], method: str) -> Precision:
    """GPTQ, AWQ, auto-round: packed integers with a scale and a zero point for each group of columns."""
    bits = bit_width(config, "bits", "w_bit", choices=PACKED)
    return grouped(method, bits, group_columns(config, "group_size", "q_group_size", default=128) or -1)


def bitsandbytes(config: Mapping[str, Any]) -> Precision:
    if not config.get("load_in_4bit"):
        # SCB: one fp32 a row; and weight_format, one byte
        return replace(precision("int8"), tensor_bytes=1)
    kind = config.get("bnb_4bit_quant_type", "fp4")
    if kind not in ("nf4", "fp4"):
        raise InvalidInput("quantization_config: bnb_4bit_quant_type must be nf4 or fp4. Got {kind}.", kind=shown(kind))
    return precision(f"{kind}-double" if config.get("bnb_4bit_use_double_quant") else kind)


def block_fp8(config: Mapping[str, Any], scale_bits: int = 32) -> Precision:
    """fp8 with a scale for each block (DeepSeek-V3), or for each tensor, and then one for the activations if static."""
    if not config.get("weight_block_size"):
        scalars = 2 if config.get("activation_scheme") == "static" else 1
        return replace(precision("fp8-e4m3"), tensor_bytes=scalars * SCALAR)
    rows, columns = two_sizes(config["weight_block_size"], "weight_block_size")
    scale = Scale(Message("{scale_bits}-bit scale", scale_bits=scale_bits), scale_bits, rows, columns)
    return replace(precision("fp8-block"), block=columns, scales=(scale,))


def fbgemm() -> Precision:
    """The precision of FBGEMM's fp8: one fp32 scale a row, and the bound of the activations' scale."""
    return replace(precision("fp8-channel"), tensor_bytes=SCALAR)


def mlx(config: Mapping[str, Any]) -> Precision:
    """MLX: a 16-bit scale and a 16-bit offset for each group (mode affine), or the block formats."""
    mode = config.get("mode") or "affine"
    if mode in ("mxfp4", "mxfp8", "nvfp4"):
        return replace(precision(mode), tensor_bytes=0)
    if mode != "affine":
        raise missing(Message("MLX's mode {mode}", mode=shown(mode)))
    bits = bit_width(config, "bits", choices=(2, 3, 4, 5, 6, 8), default=4)
    group = group_columns(config, "group_size", default=64)
    if not group:
        raise InvalidInput("quantization_config: group_size must be positive: MLX has no scale for whole rows.")
    scale = Scale("16-bit scale and offset", 32, 1, group)
    return Precision(
        name=f"mlx-{bits}bit-{group}g",
        kind="integer",
        element_bits=bits,
        compute="bf16",
        block=group,
        scales=(scale,),
        source="mlx, python/mlx/nn/layers/quantized.py",
    )


# What modelopt 0.47 exports: the precision, and how many fp32 scalars a matrix has beside it.
_MODELOPT = {
    "NVFP4": ("nvfp4", 2), "W4A16_NVFP4": ("nvfp4", 1), "NVFP4_AWQ": ("nvfp4", 2), "FP8": ("fp8-e4m3", 2),
    "FP8_PER_CHANNEL_PER_TOKEN": ("fp8-channel", 0), "FP8_PB_WO": ("fp8-block", 0), "FP8_PB_REAL": ("fp8-block", 0),
    "MXFP8": ("mxfp8", 0), "MXFP4": ("mxfp4", 0), "W4A8_MXFP4_FP8": ("mxfp4", 0), "W4A16_AWQ": ("int4", 0),
    "W4A8_AWQ": ("int4", 2), "W8A16": ("int8", 0), "W8A8_SQ_PER_CHANNEL": ("int8", 1),
}  # fmt: skip


def modelopt(algorithm: str, config: Mapping[str, Any]) -> Precision:
    """NVIDIA's tool: fp32 scalars for the weight and, unless they stay 16 bits wide, for the activations.

    AWQ's factors of the inputs are stored where no norm absorbs them, which no config says: they are left out, 0.02 %.
    """
    if algorithm not in _MODELOPT:
        raise missing(f"quant_algo {shown(algorithm)}")
    name, scalars = _MODELOPT[algorithm]
    stored = replace(precision(name), tensor_bytes=scalars * SCALAR)
    group = group_columns(config, "group_size")
    if name in ("nvfp4", "int4") and group and group != stored.block:
        stored = replace(stored, block=group, scales=(replace(stored.scales[0], columns=group),))
    if name == "int4":
        stored = replace(stored, scales=(replace(stored.scales[0], what="fp32 scale", bits=32),))
    if algorithm == "W8A8_SQ_PER_CHANNEL":
        stored = replace(stored, scales=(*stored.scales, Scale("16-bit factor of the inputs", 16, 0, 1)))
    return stored


def compressed_tensors(group: Mapping[str, Any], form: str) -> Precision:
    """One scheme of config_groups; `form` is the format that it is packed in. Scales are as wide as the model's
    type.
    """
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise missing(Message("a group with weights {weights}", weights=shown(weights)))
    bits, columns = bit_width(weights, "num_bits", choices=range(1, 9)), group_columns(weights, "group_size")
    static = _static(group.get("input_activations"))
    if weights.get("type") == "float":
        return _floats(weights, bits, columns, static)
    if weights.get("type") == "int":
        return _integers(weights, bits, columns, _packed(form, bits), static)
    raise missing(Message("type {type} of {bits} bits", type=shown(weights.get("type")), bits=bits))


def _packed(form: str, bits: int) -> bool:
    """Whether integers are packed, or take a byte each; a group that does not say is packed where that saves memory."""
    if "24" in form:
        raise missing(Message("the sparse format {form}", form=shown(form)))
    return "pack" in form or (bits < 8 and form not in ("int-quantized", "naive-quantized"))


def _static(activations: Any) -> bool:
    return isinstance(activations, Mapping) and activations.get("dynamic") in (False, "local")


def _floats(weights: Mapping[str, Any], bits: int, columns: int, static: bool) -> Precision:
    if columns == 32 and bits in (4, 6, 8):
        return precision(f"mxfp{bits}")
    if bits == 4 and columns == 16:
        return replace(precision("nvfp4"), tensor_bytes=(1 + static) * SCALAR)
    if bits != 8:
        raise missing(Message("floats of {bits} bits in groups of {columns}", bits=bits, columns=columns))
    strategy, short = weights.get("strategy"), 2 * static
    if strategy == "channel":
        return replace(precision("fp8-channel"), scales=(Scale("16-bit scale", 16),), tensor_bytes=short)
    if strategy == "block":
        rows, columns = two_sizes(weights.get("block_structure") or [128, 128], "block_structure")
        return block_fp8({"weight_block_size": [rows, columns]}, 16)
    return replace(precision("fp8-e4m3"), tensor_bytes=2 + short)


def _integers(weights: Mapping[str, Any], bits: int, group: int, packed: bool, static: bool) -> Precision:
    """Integers, packed densely into int32; else one byte each, whatever the bits."""
    scales = [Scale("16-bit scale", 16, 1, group)]
    if weights.get("symmetric") is False:
        scales.append(Scale("zero point", bits if packed else 8, 1, group))
    if weights.get("actorder") == "group":
        scales.append(Scale("group index (int32)", 32, 0, 1))
    plain = 128 if bits < 8 else 0  # the group size of a bare int4 or int8
    name = f"int{bits}" + ("" if group == plain else f"-{group}g" if group else "-channel")
    return Precision(
        name=name,
        kind="integer",
        element_bits=bits if packed else 8,
        compute="bf16" if packed else "int8",
        block=group or 1,
        scales=tuple(scales),
        tensor_bytes=SHAPE if packed else 2 * static,
        source="compressed-tensors, compressors",
    )


def quark(scheme: Mapping[str, Any]) -> Precision:
    """AMD's tool: the weight of one scheme."""
    weight = scheme.get("weight")
    if isinstance(weight, list):  # two-level schemes
        weight = weight[-1] if weight else None
    if not isinstance(weight, Mapping):
        raise missing(Message("quark's weight {weight}", weight=shown(weight)))
    kind, how = weight.get("dtype"), weight.get("qscheme")
    if kind == "fp4" and how == "per_group" and whole_number(weight, "group_size") == 32:
        return precision("mxfp4")
    if kind == "fp8_e4m3" and how in ("per_tensor", "per_channel"):
        return precision("fp8-e4m3" if how == "per_tensor" else "fp8-channel")
    if kind == "int8" and how == "per_channel":
        return precision("int8")
    raise missing(Message("quark's dtype {kind} with qscheme {how}", kind=shown(kind), how=shown(how)))
